#include "nn/layers/embedding.h"

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"
#include "ops/index/embedding.h"
#include "ops/index/embedding_bag.h"

namespace flow::nn {

using internal::text_of;

namespace {
// What the options of both layers have in common.
template <class Options>
std::string norm_text(const Options& options) {
  std::string text;
  if (options.max_norm) text += ", max_norm=" + text_of(options.max_norm);
  if (options.norm_type != 2) text += ", norm_type=" + text_of(options.norm_type);
  return text;
}

// N(0, 1); the row of the padding is 0.
Tensor drawn_table(const char* layer, int64_t num_embeddings, int64_t embedding_dim,
                   std::optional<int64_t> padding_idx) {
  internal::check_sizes(
      layer, {{"num_embeddings", num_embeddings}, {"embedding_dim", embedding_dim}}, Site::none());
  if (padding_idx && (*padding_idx < -num_embeddings || *padding_idx >= num_embeddings)) {
    throw InvalidArgument(str("[", layer, "] padding_idx must be one of the ", num_embeddings,
                              " rows of the table; received ", *padding_idx));
  }
  const Shape shape = {num_embeddings, embedding_dim};
  return init::internal::draw_initial(empty(shape), [padding_idx](const Tensor& table) {
    table.normal_(0, 1);
    if (padding_idx) table.select(0, *padding_idx).fill_(0);
  });
}
}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingLayerOptions options,
                     Site site)
    : options_(options) {
  const SiteScope scope(site);
  weight = register_parameter(
      "weight", drawn_table("Embedding", num_embeddings, embedding_dim, options.padding_idx));
  std::string text = str(num_embeddings, ", ", embedding_dim);
  if (options.padding_idx) text += ", padding_idx=" + text_of(options.padding_idx);
  text += norm_text(options);
  if (options.scale_grad_by_freq) text += ", scale_grad_by_freq=True";
  set_extra_repr(std::move(text));
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight,
                   {.padding_idx = options_.padding_idx,
                    .max_norm = options_.max_norm,
                    .norm_type = options_.norm_type,
                    .scale_grad_by_freq = options_.scale_grad_by_freq});
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
                           EmbeddingBagLayerOptions options, Site site)
    : options_(std::move(options)) {
  const SiteScope scope(site);
  weight = register_parameter(
      "weight", drawn_table("EmbeddingBag", num_embeddings, embedding_dim, options_.padding_idx));
  std::string text = str(num_embeddings, ", ", embedding_dim, norm_text(options_));
  text += ", mode=" + text_of(options_.mode);
  if (options_.padding_idx) text += ", padding_idx=" + text_of(options_.padding_idx);
  set_extra_repr(std::move(text));
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
