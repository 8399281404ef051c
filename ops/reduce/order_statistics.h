// Elements by their rank, and the most frequent one. Equal elements share a rank by their places;
// NaN counts as larger than every number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "ops/reduce/reduce.h"

namespace flow {

// The middle element, the lower one of two; NaN where there is one. Over all elements the gradient
// is shared by those that are equal to it.
Tensor median(const TensorArg& x);
ValuesIndices median(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
// Of the elements that are not NaN; NaN where there are none.
Tensor nanmedian(const TensorArg& x);
ValuesIndices nanmedian(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

struct KthvalueOptions {
  int64_t dim = -1;
  bool keepdim = false;
};

// The k-th smallest element along `dim`, counted from 1, and where it stood.
ValuesIndices kthvalue(const TensorArg& x, int64_t k, const KthvalueOptions& options = {});

// The element that comes most often along `dim`, the smallest of several such, and where it stands
// last.
ValuesIndices mode(const TensorArg& x, int64_t dim = -1, const KeepdimOptions& options = {});

struct QuantileOptions {
  std::optional<int64_t> dim = {};  // unset: over all elements
  bool keepdim = false;
  std::string interpolation = "linear";  // "lower", "higher", "nearest", "midpoint"
};

// The value at rank q (n - 1) of the n elements in order, counted from 0, between two elements as
// `interpolation` says; NaN where there is one. 0 <= q <= 1; several of them give a new first dim.
//   quantile(x (3, 8), 0.25, {.dim = 1}): (3);  quantile(x (3, 8), {0.1, 0.9}, {.dim = 1}): (2, 3)
Tensor quantile(const TensorArg& x, double q, const QuantileOptions& options = {});
Tensor quantile(const TensorArg& x, const std::vector<double>& q,
                const QuantileOptions& options = {});
// Of the elements that are not NaN.
Tensor nanquantile(const TensorArg& x, double q, const QuantileOptions& options = {});
Tensor nanquantile(const TensorArg& x, const std::vector<double>& q,
                   const QuantileOptions& options = {});

}  // namespace flow
