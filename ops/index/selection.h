// Elements picked, replaced or found by position or value. They are composed of other functions.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct IsinOptions {
  bool assume_unique = false;  // the result is the same either way
  bool invert = false;
};

// Whether each element of x is one of `test`: bool.
Tensor isin(const TensorArg& x, const TensorArg& test, const IsinOptions& options = {});

// Elements of the flattened x at `index`, whose shape the result has; negative ones count from the
// end.
Tensor take(const TensorArg& x, const TensorArg& index);
// gather, where x and indices are broadcast in the other dims; without dim, of the flattened ones.
Tensor take_along_dim(const TensorArg& x, const TensorArg& indices,
                      std::optional<int64_t> dim = std::nullopt);

// A copy of x with alpha times the i-th slice of source along `dim` added to slice index[i].
Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 double alpha = 1);

// nonzero under its other name.
Tensor argwhere(const TensorArg& x);

// A copy of x with the slices at `index` along `dim` replaced by a number, by the slices of
// `source`.
Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value);
Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);

// A copy of x with the elements where mask (bool, broadcast to x) is true replaced by those of
// source, in order. source has at least as many.
Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source);

// The larger (smaller) one; the number where the other is NaN.
Tensor fmax(const TensorArg& a, const TensorArg& b);
Tensor fmin(const TensorArg& a, const TensorArg& b);

}  // namespace flow
