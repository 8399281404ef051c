// Running sums and products.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

// y[i] = x[0] + … + x[i] (times, for cumprod) along `dim`. Bool and integers give int64; 16- and
// 32-bit floats are accumulated wider.
Tensor cumsum(const TensorArg& x, int64_t dim);
Tensor cumprod(const TensorArg& x, int64_t dim);

struct ScanOptions {
  std::optional<DType> dtype = std::nullopt;  // x is cast to it first
};

Tensor cumsum(const TensorArg& x, int64_t dim, const ScanOptions& options);
Tensor cumprod(const TensorArg& x, int64_t dim, const ScanOptions& options);

}  // namespace flow
