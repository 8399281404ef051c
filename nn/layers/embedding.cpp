#include "nn/layers/embedding.h"

#include "nn/init.h"
#include "ops/creation/creation.h"
#include "ops/index/embedding.h"
#include "ops/index/embedding_bag.h"

namespace flow::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options)
    : options_(options) {
  weight = register_parameter("weight", init::normal_(empty({num_embeddings, embedding_dim})));
  if (options.padding_idx) init::constant_(weight.select(0, *options.padding_idx).detach(), 0);
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight,
                   {.padding_idx = options_.padding_idx,
                    .max_norm = options_.max_norm,
                    .norm_type = options_.norm_type,
                    .scale_grad_by_freq = options_.scale_grad_by_freq});
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
                           EmbeddingBagLayerOptions options)
    : options_(std::move(options)) {
  weight = register_parameter("weight", init::normal_(empty({num_embeddings, embedding_dim})));
  if (options_.padding_idx) init::constant_(weight.select(0, *options_.padding_idx).detach(), 0);
}

Tensor EmbeddingBag::forward(const Tensor& indices) {
  return forward(indices, Tensor());
}

Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets) {
  return embedding_bag(indices, weight,
                       {.offsets = offsets,
                        .max_norm = options_.max_norm,
                        .norm_type = options_.norm_type,
                        .mode = options_.mode,
                        .include_last_offset = options_.include_last_offset,
                        .padding_idx = options_.padding_idx});
}

}  // namespace flow::nn
