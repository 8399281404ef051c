// Convolutions through cuDNN, and what flow's own CUDA kernels do for them.
#pragma once

#include "core/kernel.h"
#include "ops/conv/conv_op.h"

namespace flow::ops {

// Not applicable where the library cannot be loaded, or where padding differs between the ends of a
// dim in a way that changes the number of windows. `fallback` runs where cuDNN turns out to have no
// deterministic algorithm; where it does not apply, neither does this.
KernelChoice select_conv_cudnn(const KernelQuery& query, const KernelChoice& fallback);

// Output 1 of conv_backward_weight_bias: the sum of dy, input 1, of each channel.
void sum_conv_bias(const KernelContext& ctx, const ConvSizes& sizes);

}  // namespace flow::ops
