// Rows of a table by index.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace flow {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row gets no gradient; negative: from the end
};

// y[i…] = weight[input[i…]]: weight (rows, D), input integers of any shape, y (…, D). An index out
// of [0, rows) throws InvalidArgument. The gradient adds rows up in the order of the input.
//   embedding(tokens (B, T), weight (V, D)): (B, T, D)
Tensor embedding(const TensorArg& input, const TensorArg& weight,
                 const EmbeddingOptions& options = {});

}  // namespace flow
