// Embedding: rows of a table by index.
#pragma once

#include <optional>

#include "nn/module.h"

namespace flow::nn {

struct EmbeddingLayerOptions {
  std::optional<int64_t> padding_idx = {};  // this row starts at 0 and gets no gradient
  std::optional<double> max_norm = {};      // rows taken are first shortened to this length
  double norm_type = 2;
  bool scale_grad_by_freq = false;
};

// indices: (…) of int64 or int32 → (…, embedding_dim). weight: (num_embeddings, embedding_dim),
// starts as N(0, 1).
class Embedding : public Module<Embedding> {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options = {});
  Tensor forward(const Tensor& indices);

  Tensor weight;

 private:
  EmbeddingLayerOptions options_;
};

}  // namespace flow::nn
