// Parts of convolutions that flow's own CUDA kernels compute.
#pragma once

#include "core/kernel.h"
#include "ops/conv/conv_op.h"

namespace flow::ops {

// Output 1 of conv_backward_weight_bias: the sum of dy, input 1, of each channel.
void sum_conv_bias(const KernelContext& ctx, const ConvSizes& sizes);

}  // namespace flow::ops
