// Singular values of a matrix of low rank, from products with random vectors.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct SvdLowrankOptions {
  int64_t q = 6;      // how many singular values are wanted; at most min(m, n) are given
  int64_t niter = 2;  // subspace iterations
  Tensor M = {};      // is subtracted from A; broadcasts to its shape
};

struct LowrankSvd {
  Tensor U, S, V;  // (…, m, q), (…, q), (…, n, q)
};

// A ≈ U diag(S) Vᵀ for A (…, m, n): the singular value decomposition within the span of the
// products of A and q random vectors (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1).
// Floating only.
LowrankSvd svd_lowrank(const TensorArg& A, const SvdLowrankOptions& options = {});

struct PcaLowrankOptions {
  std::optional<int64_t> q = {};  // unset: min(6, m, n)
  bool center = true;             // subtract the mean of each column
  int64_t niter = 2;
};

// The q principal components of the rows of A, which are the columns of V, by svd_lowrank.
LowrankSvd pca_lowrank(const TensorArg& A, const PcaLowrankOptions& options = {});

}  // namespace flow
