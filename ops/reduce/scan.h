// Running sums, products and extrema, and differences.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct ScanOptions {
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// The running sum y[i] = x[0] + … + x[i] (cumsum) or the running product (cumprod) along `dim`.
// Bool and integer inputs give int64; floats of 16 and 32 bits are accumulated in a wider dtype.
Tensor cumsum(const TensorArg& x, int64_t dim, const ScanOptions& options = {});
Tensor cumprod(const TensorArg& x, int64_t dim, const ScanOptions& options = {});

// Return the running maximum (cummax) or minimum (cummin) along `dim` and its index. If several
// elements are equal, the index is that of the last one. From the first NaN on, the values are NaN.
ValuesIndices cummax(const TensorArg& x, int64_t dim);
ValuesIndices cummin(const TensorArg& x, int64_t dim);

// The running log(exp(x[0]) + … + exp(x[i])) along `dim`, computed without overflow. Requires: a
// floating dtype.
Tensor logcumsumexp(const TensorArg& x, int64_t dim);

struct DiffOptions {
  int64_t n = 1;  // how many times the difference is taken
  int64_t dim = -1;
  Tensor prepend = {};  // is concatenated in front of x along dim first, unless n is 0
  Tensor append = {};
};

// The differences x[i + 1] - x[i] along `dim`. For bool inputs, an element is true if its two
// neighbours differ.  diff(x (5)): (4)
Tensor diff(const TensorArg& x, const DiffOptions& options = {});

}  // namespace flow
