// Norms, distances and angles of vectors along a dim. Only floating dtypes are allowed.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct NormalizeOptions {
  double p = 2;
  Ints dim = 1;
  double eps = 1e-12;
};

// Divides vectors by their norm: x / max(norm(x, p) over dim, eps).
Tensor normalize(const TensorArg& x, const NormalizeOptions& options = {});

struct CosineOptions {
  int64_t dim = 1;
  double eps = 1e-8;  // norms are at least this large
};

// The cosine of the angle between a and b along `dim` of their broadcast shape: the sum of products
// of a and b, each divided by its norm.  cosine_similarity(a (N, D), b (N, D)): (N)
Tensor cosine_similarity(const TensorArg& a, const TensorArg& b, const CosineOptions& options = {});

struct DistanceOptions {
  double p = 2;
  double eps = 1e-6;  // added to each difference
  bool keepdim = false;
};

// The p-norm of a - b + eps over the last dim.
Tensor pairwise_distance(const TensorArg& a, const TensorArg& b,
                         const DistanceOptions& options = {});

}  // namespace flow
