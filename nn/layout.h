// Laying state out over ranks.
#pragma once

#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"

namespace flow::nn {

// A tensor that every rank holds whole, or a global one, in the layout given. Of a local tensor the
// values of the placement's first rank count. Collective.
Tensor laid_out(const Tensor& whole, const Placement& placement, const NdSbp& sbp, Site site);
// The same in the layout of `like`; as it is where that is local.
Tensor with_layout_of(const Tensor& whole, const Tensor& like, Site site);
// A layout in which nothing lies twice: every axis that holds replicas cuts the dim that is longest
// so far.
NdSbp without_replicas(const Shape& shape, const Placement& placement, NdSbp sbp);

}  // namespace flow::nn
