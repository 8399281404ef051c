// Rows of a table by index.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row gets no gradient; negative: from the end
  std::optional<double> max_norm = {};  // rows taken are first shortened in place to this length
  double norm_type = 2;                 // p of the norm that measures it
  bool scale_grad_by_freq = false;      // a row's gradient is divided by how often the row is taken
};

// y[i…] = weight[input[i…]]: weight (rows, D), input integers of any shape, y (…, D). An index out
// of [0, rows) throws InvalidArgument. The gradient adds rows up in the order of the input.
//   embedding(tokens (B, T), weight (V, D)): (B, T, D)
Tensor embedding(const TensorArg& input, const TensorArg& weight,
                 const EmbeddingOptions& options = {});

}  // namespace flow
