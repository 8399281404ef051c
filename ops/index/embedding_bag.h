// Sums, means and maxima of embeddings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct EmbeddingBagOptions {
  Tensor offsets = {};  // where each bag of a vector of indices begins, from 0 on
  std::optional<double> max_norm = {};
  double norm_type = 2;
  std::string mode = "mean";                // "sum", "max"
  Tensor per_sample_weights = {};           // of each index; mode "sum" only
  bool include_last_offset = false;         // the last offset is the number of indices
  std::optional<int64_t> padding_idx = {};  // does not count
};

// The rows of weight (V, D) at the indices of each bag, joined: indices (B, n) are bags of n; a
// vector of indices is cut at `offsets` (B). Empty bags give zeros: (B, D).
Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight,
                     const EmbeddingBagOptions& options = {});

}  // namespace flow
