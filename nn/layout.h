// Layouts of parameters, buffers and optimizer state over ranks.
#pragma once

#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"

namespace flow::nn {

// Converts a tensor, global or held whole by every rank, to the given layout. For a local tensor
// the values of the placement's first rank are used. Collective.
Tensor laid_out(const Tensor& whole, const Placement& placement, const NdSbp& sbp, Site site);
// Converts to the layout of `like`; returns `whole` itself if `like` is local.
Tensor with_layout_of(const Tensor& whole, const Tensor& like, Site site);
// A layout without replicas: every axis that holds replicas splits the dim whose local size is
// largest so far.
NdSbp without_replicas(const Shape& shape, const Placement& placement, NdSbp sbp);

}  // namespace flow::nn
