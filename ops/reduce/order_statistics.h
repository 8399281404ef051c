// Medians, quantiles and other elements chosen by their rank in sorted order, and the most frequent
// element. Equal elements are ranked by their positions; NaN ranks above every number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "ops/reduce/reduce.h"

namespace flow {

// The median: the middle element in sorted order, or the lower of the two middle ones. The result
// is NaN if an element is NaN. Without `dim`, the median of all elements is returned and its
// gradient is divided evenly among the elements equal to it.
Tensor median(const TensorArg& x);
ValuesIndices median(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});
// The median of the elements that are not NaN; the result is NaN if there are none.
Tensor nanmedian(const TensorArg& x);
ValuesIndices nanmedian(const TensorArg& x, int64_t dim, const KeepdimOptions& options = {});

struct KthvalueOptions {
  int64_t dim = -1;
  bool keepdim = false;
};

// Returns the k-th smallest element along `dim` and its index. k counts from 1.
ValuesIndices kthvalue(const TensorArg& x, int64_t k, const KthvalueOptions& options = {});

// Returns the most frequent element along `dim` and the index of its last occurrence. If several
// elements are equally frequent, the smallest is returned.
ValuesIndices mode(const TensorArg& x, int64_t dim = -1, const KeepdimOptions& options = {});

struct QuantileOptions {
  std::optional<int64_t> dim = {};  // unset: over all elements
  bool keepdim = false;
  std::string interpolation = "linear";  // "lower", "higher", "nearest", "midpoint"
};

// The q-quantile: the value at position q (n - 1), counted from 0, among the n elements in sorted
// order. Between two elements, `interpolation` decides the value. The result is NaN if an element
// is NaN. Requires: 0 <= q <= 1. A vector of q adds a new first dim to the result.
//   quantile(x (3, 8), 0.25, {.dim = 1}): (3);  quantile(x (3, 8), {0.1, 0.9}, {.dim = 1}): (2, 3)
Tensor quantile(const TensorArg& x, double q, const QuantileOptions& options = {});
Tensor quantile(const TensorArg& x, const std::vector<double>& q,
                const QuantileOptions& options = {});
// The quantile of the elements that are not NaN.
Tensor nanquantile(const TensorArg& x, double q, const QuantileOptions& options = {});
Tensor nanquantile(const TensorArg& x, const std::vector<double>& q,
                   const QuantileOptions& options = {});

}  // namespace flow
