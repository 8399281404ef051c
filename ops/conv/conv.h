// Convolutions over one, two or three spatial dims.
#pragma once

#include "core/tensor.h"

namespace flow {

// One number stands for all spatial dims.
struct ConvOptions {
  Ints stride = 1;
  Padding padding = 0;  // zeros on both sides; or "same", "valid"
  Ints dilation = 1;    // distance of the kernel's taps
  int64_t groups = 1;   // channels are cut into so many blocks that do not mix
};

// Cross-correlation of x (N, C, in...) with weight (O, C / groups, kernel...), plus bias (O) when
// it is defined, -> (N, O, out...), out = (in + padding - dilation (kernel - 1) - 1) / stride + 1
// rounded down:
//   y[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] x[n, c, p stride - padding + k
//   dilation]
// x without its batch dim gives y without it. All of one dtype but bool; 16-bit floats accumulate
// in float32, integers in float64, which is exact below 2^53. "same" gives ceil(in / stride)
// outputs for every stride.
//
//   Tensor y = conv2d(x, weight, bias, {.stride = 2, .padding = 1});
Tensor conv1d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options = {});
Tensor conv1d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options = {});
Tensor conv2d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options = {});
Tensor conv2d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options = {});
Tensor conv3d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options = {});
Tensor conv3d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options = {});

struct ConvTransposeOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints output_padding = 0;  // more rows at the end, as several sizes of x give one size of y
  int64_t groups = 1;
  Ints dilation = 1;
};

// The gradients of conv1d, conv2d and conv3d in their input, as ops of their own: x (N, C, in...),
// weight (C, O / groups, kernel...), bias (O) -> (N, O, out...),
// out = (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
//
//   Tensor twice_as_large = conv_transpose2d(x, weight, {.stride = 2});   // 2 x 2 kernel
Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options = {});

}  // namespace flow
