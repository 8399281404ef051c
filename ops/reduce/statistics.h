// Variances, norms and log-sum-exp. `dims` have the meaning they have in ops/reduce/reduce.h.
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

// The variance sum((x - mean(x))^2) / (n - 1) over `dims`, and its square root, the standard
// deviation. With the default divisor n - 1, a single element gives NaN.
Tensor var(const TensorArg& x);
Tensor var(const TensorArg& x, const Ints& dims, const VarOptions& options = {});
Tensor std(const TensorArg& x);
Tensor std(const TensorArg& x, const Ints& dims, const VarOptions& options = {});

struct VarMean {
  Tensor var, mean;
};

struct StdMean {
  Tensor std, mean;
};

// var or std, and the mean over the same dims.
//   auto [var, mean] = var_mean(x, 0)
VarMean var_mean(const TensorArg& x);
VarMean var_mean(const TensorArg& x, const Ints& dims, const VarOptions& options = {});
StdMean std_mean(const TensorArg& x);
StdMean std_mean(const TensorArg& x, const Ints& dims, const VarOptions& options = {});

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

// An alias of norm.
Tensor vector_norm(const TensorArg& x, const VectorNormOptions& options = {});

// The p-norm (sum |x|^p)^(1/p). Where the norm is zero, its gradient is zero.
Tensor norm(const TensorArg& x, const NormOptions& options = {});

// log(sum(exp(x))), computed without overflow. The result over no elements is -inf.
Tensor logsumexp(const TensorArg& x);
Tensor logsumexp(const TensorArg& x, const Ints& dims, const KeepdimOptions& options = {});

// The mean of the elements that are not NaN; NaN if there are none.
Tensor nanmean(const TensorArg& x);
Tensor nanmean(const TensorArg& x, const Ints& dims, const ReduceOptions& options = {});

// The number of nonzero elements, as int64. NaN counts as nonzero.
Tensor count_nonzero(const TensorArg& x, const Ints& dims = {});

}  // namespace flow
