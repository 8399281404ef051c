// Where the targets of losses lie.
#pragma once

#include "core/tensor.h"

namespace flow::nn {

// The target on the input's placement: those of a pipeline may be given where its first stage is.
Tensor beside(const Tensor& input, const Tensor& target);

}  // namespace flow::nn
