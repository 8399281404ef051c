// Convolutions by cuDNN, and the parts of them that flow's own CUDA kernels compute.
#pragma once

#include "core/kernel.h"
#include "ops/conv/conv_op.h"

namespace flow::ops {

// Not applicable if the library cannot be loaded, or if the two ends of a dim have different
// padding that changes the number of windows. `fallback` runs if cuDNN has no deterministic
// algorithm; if `fallback` does not apply, this kernel does not apply either.
KernelChoice select_conv_cudnn(const KernelQuery& query, const KernelChoice& fallback);

// Output 1 of conv_backward_weight_bias: the sum of dy, input 1, of each channel.
void sum_conv_bias(const KernelContext& ctx, const ConvSizes& sizes);

}  // namespace flow::ops
