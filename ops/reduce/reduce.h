// Reductions to a sum, mean, product or truth value. Negative `dims` count from the end, and an
// empty list means all dims. The reduced dims are removed, or kept with size 1 if keepdim is true.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct ReduceOptions {
  bool keepdim = false;
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// Options of reductions that have no dtype argument.
struct KeepdimOptions {
  bool keepdim = false;
};

// The sum of x over `dims`; the sum of no elements is 0. Bool and integer inputs give int64;
// floating inputs keep their dtype and are accumulated in a wider one if they have 16 or 32 bits.
//   sum(x, {0, 1}), sum(x, -1, {.keepdim = true})
Tensor sum(const TensorArg& x);
Tensor sum(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// The sum of the elements that are not NaN.
Tensor nansum(const TensorArg& x);
Tensor nansum(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// The mean of x over `dims`: sum(x, dims) divided by the number of elements. The mean of no
// elements is NaN. Requires: a floating dtype.
Tensor mean(const TensorArg& x);
Tensor mean(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// Sums x over the dims along which `shape` would be repeated to broadcast it to x.shape(). This is
// the gradient of broadcasting. Returns x itself if the shapes are equal.
//   sum_to(x (4, 3), {3}) is sum(x, 0)
Tensor sum_to(const TensorArg& x, const Shape& shape);

// The product of x over one dim or over all elements; the product of no elements is 1. Bool and
// integer inputs give int64.
Tensor prod(const TensorArg& x);
Tensor prod(const TensorArg& x, int64_t dim, const ReduceOptions& options = {});

// Whether any element (any) or every element (all) is nonzero, as bool, or as uint8 if x is uint8.
// NaN counts as nonzero. Without elements, any gives false and all gives true.
Tensor any(const TensorArg& x);
Tensor any(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});
Tensor all(const TensorArg& x);
Tensor all(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

}  // namespace flow
