// Embedding layers: look up rows of a table by index. A negative size and a padding_idx that is no
// row are InvalidArgument.
#pragma once

#include <optional>
#include <string>

#include "nn/module.h"

namespace flow::nn {

struct EmbeddingLayerOptions {
  std::optional<int64_t> padding_idx = {};  // this row is initialised to 0 and gets no gradient
  // Rows that are looked up and whose norm is greater are first scaled down to this norm, in place.
  std::optional<double> max_norm = {};
  double norm_type = 2;
  bool scale_grad_by_freq = false;
};

// indices: (…), int64 or int32 → (…, embedding_dim). weight: (num_embeddings, embedding_dim),
// initialised as N(0, 1).
class Embedding : public Module<Embedding> {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options = {},
            Site site = Site::here());
  Tensor forward(const Tensor& indices);

  Tensor weight;

 private:
  EmbeddingLayerOptions options_;
};

struct EmbeddingBagLayerOptions {
  std::optional<double> max_norm = {};
  double norm_type = 2;
  std::string mode = "mean";         // or "sum", "max"
  bool include_last_offset = false;  // the last offset is the total number of indices
  // This row is initialised to 0 and left out of every bag.
  std::optional<int64_t> padding_idx = {};
};

// Reduces the rows of each bag of indices to one row. indices: (B, n), a bag per row; or one vector
// of indices, where bag i begins at offsets[i] (offsets: (B)). Result: (B, embedding_dim). See
// ops/index/embedding_bag.h.
class EmbeddingBag : public Module<EmbeddingBag> {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagLayerOptions options = {},
               Site site = Site::here());
  Tensor forward(const Tensor& indices);
  Tensor forward(const Tensor& indices, const Tensor& offsets);

  Tensor weight;

 private:
  EmbeddingBagLayerOptions options_;
};

}  // namespace flow::nn
