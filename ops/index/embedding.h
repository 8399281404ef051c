// Rows of a table by index.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // row without gradient; negative: counts from the end
  std::optional<double> max_norm = {};  // first scales the rows that are read in place to this norm
  double norm_type = 2;                 // p of that norm
  bool scale_grad_by_freq = false;      // divides a row's gradient by how often it is read
};

// Looks up rows of a table: y[i…] = weight[input[i…]]. weight is (rows, D), input holds integers in
// any shape, and y is (…, D). An index outside [0, rows) throws InvalidArgument. The gradient adds
// up the rows in the order of the input.
//   embedding(tokens (B, T), weight (V, D)): (B, T, D)
Tensor embedding(const TensorArg& input, const TensorArg& weight,
                 const EmbeddingOptions& options = {});

// Scales the rows of weight (rows, D) that `indices` names down to the p-norm max_norm, in place,
// where they are longer. This is not recorded. Returns weight.
const Tensor& embedding_renorm_(const TensorArg& weight, const TensorArg& indices, double max_norm,
                                double norm_type = 2);

}  // namespace flow
