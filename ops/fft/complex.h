// Complex numbers as real tensors: the last dim, of size 2, holds the real and the imaginary part
// (ops/fft/fft.h). The names are PyTorch's for complex tensors; call them with the namespace, as in
// fft::abs(y), because functions of real tensors have some of the same names.
#pragma once

#include "core/tensor.h"

namespace flow::fft {

// (…, 2) of two real tensors, which broadcast; without `imag`, the imaginary parts are 0.
Tensor complex(const TensorArg& real, const TensorArg& imag = Tensor());
// The numbers of the given magnitudes and angles in radians; shapes broadcast.
Tensor polar(const TensorArg& abs, const TensorArg& angle);

// The real and the imaginary parts of z (…, 2), as views: (…).
Tensor real(const TensorArg& z);
Tensor imag(const TensorArg& z);
// The conjugate: (…, 2).
Tensor conj(const TensorArg& z);
// The magnitude sqrt(re^2 + im^2): (…). Its gradient is 0 at 0.
Tensor abs(const TensorArg& z);
// The angle in radians, in [-π, π]: (…). At 0 the angle and its gradient are 0.
Tensor angle(const TensorArg& z);
// The product of complex numbers; shapes broadcast.
Tensor mul(const TensorArg& a, const TensorArg& b);

}  // namespace flow::fft
