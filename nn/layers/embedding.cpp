#include "nn/layers/embedding.h"

#include "nn/init.h"
#include "ops/creation/creation.h"
#include "ops/index/embedding.h"
#include "ops/index/embedding_bag.h"

namespace flow::nn {

namespace {
// N(0, 1); the row of the padding is 0.
Tensor drawn_table(const Shape& shape, std::optional<int64_t> padding_idx) {
  return init::internal::draw_initial(empty(shape), [padding_idx](const Tensor& table) {
    table.normal_(0, 1);
    if (padding_idx) table.select(0, *padding_idx).fill_(0);
  });
}
}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options)
    : options_(options) {
  weight = register_parameter("weight",
                              drawn_table({num_embeddings, embedding_dim}, options.padding_idx));
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
  weight = register_parameter("weight",
                              drawn_table({num_embeddings, embedding_dim}, options_.padding_idx));
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
