// Convolutions over one, two or three spatial dims.
#pragma once

#include "core/tensor.h"

namespace flow {

// A single number applies to all spatial dims.
struct ConvOptions {
  Ints stride = 1;
  Padding padding = 0;  // zeros on both sides; or "same", "valid"
  Ints dilation = 1;    // distance between the kernel's taps
  int64_t groups = 1;   // number of blocks of channels, which are convolved separately
};

// Cross-correlation of x (N, C, in...) with weight (O, C / groups, kernel...), plus bias (O) if it
// is defined, -> (N, O, out...), out = (in + padding - dilation (kernel - 1) - 1) / stride + 1
// rounded down, where padding counts both sides:
//  y[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] x[n, c, p stride - padding + k dilation]
// x without its batch dim gives y without it. All operands have the same dtype (any but bool);
// 16-bit floats are accumulated in float32 and integers in float64, which is exact below 2^53.
// Padding "same" gives ceil(in / stride) outputs for every stride.
//
//  Tensor y = conv2d(x, weight, bias, {.stride = 2, .padding = 1});
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
  Ints output_padding = 0;  // elements added at the end: several sizes give the same y
  int64_t groups = 1;
  Ints dilation = 1;
};

// Transposed convolutions: the gradients of conv1d, conv2d and conv3d with respect to their input,
// as separate ops. x (N, C, in...), weight (C, O / groups, kernel...), bias (O) -> (N, O, out...),
// out = (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
//
//   Tensor twice_as_large = conv_transpose2d(x, weight, {.stride = 2});   // 2 x 2 kernel
// conv1d of x (T, N, C), time first, with weight (kernel, C, O) and bias (O), -> (T out, N, O).
// `pad` zeros are added at both ends.
Tensor conv_tbc(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                int64_t pad = 0);
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
