// Functions that choose elements by a condition or by bounds.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

// a where the condition holds, else b. Shapes broadcast; a and b are promoted as in
// ops/elementwise/binary.h; the condition is bool.  where(gt(x, 0), x, y)
Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b);
Tensor where(const TensorArg& condition, const TensorArg& a, const Scalar& b);
Tensor where(const TensorArg& condition, const Scalar& a, const TensorArg& b);
// The numbers are of one category: bool, int64 or default_dtype().
Tensor where(const TensorArg& condition, const Scalar& a, const Scalar& b);

// value where the mask holds, else x; shapes broadcast. The result has x's dtype.
Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const Scalar& value);
// The value may be a tensor without dims.
Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value);
// The same, written over x; the mask broadcasts to x's shape.
const Tensor& masked_fill_(const TensorArg& x, const TensorArg& mask, const Scalar& value);

struct ClampOptions {
  std::optional<Scalar> min = {};
  std::optional<Scalar> max = {};
};

// min(max(x, options.min), options.max), with at least one bound. NaN in x or a bound gives NaN.
// The gradient passes to x where min < x < max and is 0 elsewhere.
Tensor clamp(const TensorArg& x, const ClampOptions& options);
Tensor clamp(const TensorArg& x, const Scalar& min, const Scalar& max);
// As clamp, with bounds for each element. An undefined tensor is no bound, and max wins over min.
// The result is NaN where a bound is NaN.
Tensor clamp(const TensorArg& x, const TensorArg& min, const TensorArg& max);
// clamp with one bound.
Tensor clamp_min(const TensorArg& x, const Scalar& min);
Tensor clamp_min(const TensorArg& x, const TensorArg& min);
Tensor clamp_max(const TensorArg& x, const Scalar& max);
Tensor clamp_max(const TensorArg& x, const TensorArg& max);
// Another name of clamp.
Tensor clip(const TensorArg& x, const ClampOptions& options);
const Tensor& clamp_(const TensorArg& x, const ClampOptions& options);
const Tensor& clamp_(const TensorArg& x, const Scalar& min, const Scalar& max);

}  // namespace flow
