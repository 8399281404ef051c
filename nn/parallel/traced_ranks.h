// What ranks do together with their local tensors in a trace, as nodes of the traced step: the
// compiler then plans, joins and proves these transfers like all others.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow::nn::parallel::internal {

// Returns the mean of the ranks' tensors, which have one shape. `name`, of which the nodes keep a
// copy, tells what is averaged: ranks that average different things raise an error. Requires: a
// trace runs.
Tensor traced_mean(const Tensor& local, const std::string& name);

// Returns rank 0's tensor. The ranks' tensors have one shape. Requires: a trace runs.
Tensor traced_broadcast(const Tensor& local, const std::string& name);

}  // namespace flow::nn::parallel::internal
