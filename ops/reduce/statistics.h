// Spread, norms and log-sum-exp. `dims` as in ops/reduce/reduce.h; floating dtypes only.
#pragma once

#include <optional>

#include "core/tensor.h"
#include "ops/reduce/reduce.h"

namespace flow {

struct VarOptions {
  bool unbiased = true;  // divide by n - 1 instead of n
  bool keepdim = false;
  std::optional<double> correction = std::nullopt;  // divide by max(0, n - correction) instead
};

// var = sum((x - mean(x))^2) / (n - 1); std is its square root. NaN for n = 1 if unbiased.
Tensor var(const TensorArg& x);
Tensor var(const TensorArg& x, const Ints& dims, const VarOptions& options = {});
Tensor std(const TensorArg& x);
Tensor std(const TensorArg& x, const Ints& dims, const VarOptions& options = {});

struct NormOptions {
  double p = 2;  // 0 counts the nonzero elements; ±infinity: the largest / smallest magnitude
  Ints dim = {};
  bool keepdim = false;
};

struct VectorNormOptions {
  double ord = 2;
  Ints dim = {};
  bool keepdim = false;
};

// norm under its other name.
Tensor vector_norm(const TensorArg& x, const VectorNormOptions& options = {});

// (sum |x|^p)^(1/p). The gradient at a zero norm is zero.
Tensor norm(const TensorArg& x, const NormOptions& options = {});

// log(sum(exp(x))), computed without overflow; -inf over no elements.
Tensor logsumexp(const TensorArg& x);
Tensor logsumexp(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

// Of the elements that are not NaN: their sum, their mean (NaN where there are none).
Tensor nansum(const TensorArg& x);
Tensor nansum(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});
Tensor nanmean(const TensorArg& x);
Tensor nanmean(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// The number of elements that are not zero (NaN is not): int64.
Tensor count_nonzero(const TensorArg& x, const Ints& dims = {});

}  // namespace flow
