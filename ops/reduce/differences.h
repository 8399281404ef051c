// Numeric derivatives of sampled functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct GradientOptions {
  std::vector<double> spacing = {1};  // between the samples: one number, or one for each dim
  std::vector<Tensor> coordinates =
      {};                         // of the samples, a vector for each dim, in place of spacing
  std::vector<int64_t> dim = {};  // empty: all dims
  int64_t edge_order = 1;         // 1 or 2: the order of accuracy at both ends of a dim
};

// The derivatives of x along each of the dims, in the shape of x: central differences of second
// order (Fornberg 1988), at the ends one-sided ones. Integers are cast to default_dtype(). Each dim
// needs at least edge_order + 1 samples.
//   gradient(tensor({1.f, 2.f, 4.f, 7.f}))[0]: 1, 1.5, 2.5, 3
std::vector<Tensor> gradient(const TensorArg& x, const GradientOptions& options = {});

}  // namespace flow
