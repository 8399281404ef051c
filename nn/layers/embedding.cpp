#include "nn/layers/embedding.h"

#include "nn/init.h"
#include "ops/creation.h"
#include "ops/embedding.h"

namespace flow::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options)
    : padding_idx_(options.padding_idx) {
  weight = register_parameter("weight", init::normal_(empty({num_embeddings, embedding_dim})));
  if (padding_idx_) init::constant_(weight.select(0, *padding_idx_).detach(), 0);
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight, {.padding_idx = padding_idx_});
}

}  // namespace flow::nn
