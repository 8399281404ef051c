// Embedding: rows of a table by index.
#pragma once

#include <optional>
#include <string>

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

struct EmbeddingBagLayerOptions {
  std::optional<double> max_norm = {};
  double norm_type = 2;
  std::string mode = "mean";                // "sum", "max"
  bool include_last_offset = false;         // the last offset is the number of indices
  std::optional<int64_t> padding_idx = {};  // this row starts at 0 and does not count
};

// Bags of indices, (B, n) or a vector cut at offsets (B) → (B, embedding_dim); see
// ops/index/embedding_bag.h.
class EmbeddingBag : public Module<EmbeddingBag> {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
               EmbeddingBagLayerOptions options = {});
  Tensor forward(const Tensor& indices);
  Tensor forward(const Tensor& indices, const Tensor& offsets);

  Tensor weight;

 private:
  EmbeddingBagLayerOptions options_;
};

}  // namespace flow::nn
