// Running sums, products and extrema, and differences.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct ScanOptions {
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

// y[i] = x[0] + … + x[i] (times, for cumprod) along `dim`. Bool and integers give int64; 16- and
// 32-bit floats are accumulated wider.
Tensor cumsum(const TensorArg& x, int64_t dim, const ScanOptions& options = {});
Tensor cumprod(const TensorArg& x, int64_t dim, const ScanOptions& options = {});

// The largest (smallest) element up to each place along `dim`, the last of equal ones, and where it
// stands; NaN from the first NaN on.
ValuesIndices cummax(const TensorArg& x, int64_t dim);
ValuesIndices cummin(const TensorArg& x, int64_t dim);

// log(exp(x[0]) + … + exp(x[i])) along `dim`, without overflow. Floating dtypes only.
Tensor logcumsumexp(const TensorArg& x, int64_t dim);

struct DiffOptions {
  int64_t n = 1;  // how often
  int64_t dim = -1;
  Tensor prepend = {};  // joined to x along dim before that
  Tensor append = {};
};

// x[i + 1] - x[i] along `dim`; of bools, whether they differ.  diff(x (5)): (4)
Tensor diff(const TensorArg& x, const DiffOptions& options = {});

}  // namespace flow
