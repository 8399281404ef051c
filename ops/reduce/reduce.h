// Reductions to a sum, mean, product or truth value. `dims` counts from the end when negative; an
// empty list means all dims. Reduced dims disappear unless keepdim leaves them with size 1.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct ReduceOptions {
  bool keepdim = false;
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// Of reductions whose result is an element of x or a truth value.
struct KeepdimOptions {
  bool keepdim = false;
};

// y = sum of x over dims; 0 over no elements. Bool and integers give int64, floats their dtype;
// 16- and 32-bit floats accumulate wider.  sum(x, {0, 1}), sum(x, -1, {.keepdim = true})
Tensor sum(const TensorArg& x);
Tensor sum(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// y = sum(x, dims) / number of elements; NaN over none. Requires: a floating dtype.
Tensor mean(const TensorArg& x);
Tensor mean(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// Sums x over the dims that broadcasting `shape` to x.shape() would repeat: undoes broadcasting, as
// gradients must. x itself when the shapes are equal.  sum_to(x (4, 3), {3}) is sum(x, 0)
Tensor sum_to(const TensorArg& x, const Shape& shape);

// y = product of x, over one dim or all; 1 over no elements. Bool and integers give int64.
Tensor prod(const TensorArg& x);
Tensor prod(const TensorArg& x, int64_t dim, const ReduceOptions& options = {});

// Whether some / every element is nonzero (NaN is): bool. any of nothing is false, all is true.
Tensor any(const TensorArg& x);
Tensor any(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});
Tensor all(const TensorArg& x);
Tensor all(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

}  // namespace flow
