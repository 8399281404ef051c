// Sums, means and maxima of embeddings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct EmbeddingBagOptions {
  // Where each bag begins in a vector of indices: ascending from 0. Others are InvalidArgument, but
  // not in a trace or on a device.
  Tensor offsets = {};
  std::optional<double> max_norm = {};
  double norm_type = 2;
  std::string mode = "mean";                // or "sum", "max"
  Tensor per_sample_weights = {};           // one for each index; mode "sum" only
  bool include_last_offset = false;         // the last offset is the number of indices
  std::optional<int64_t> padding_idx = {};  // index that is skipped
};

// Combines the rows of weight (V, D) at the indices of each bag into one row by `mode`: (B, D).
// Indices of shape (B, n) are B bags of n indices; a vector of indices is divided into bags at
// `offsets` (B). An empty bag gives zeros.
Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight,
                     const EmbeddingBagOptions& options = {});

}  // namespace flow
