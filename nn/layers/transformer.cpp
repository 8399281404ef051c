#include "nn/layers/transformer.h"

#include <limits>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/shape/concat.h"

namespace flow::nn {

namespace {

LayerNorm norm_of(int64_t d_model, const TransformerEncoderLayerOptions& options, Site site) {
  return LayerNorm({d_model}, {.eps = options.layer_norm_eps, .bias = options.bias}, site);
}

MultiheadAttention attention_of(int64_t d_model, int64_t nhead,
                                const TransformerEncoderLayerOptions& options, Site site) {
  return {d_model,
          nhead,
          {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first},
          site};
}

TransformerEncoderLayerOptions layer_options(const TransformerOptions& options, Site site) {
  internal::check_sizes("Transformer",
                        {{"num_encoder_layers", options.num_encoder_layers},
                         {"num_decoder_layers", options.num_decoder_layers}},
                        site);
  return internal::checked_options("Transformer", options.d_model, options.nhead,
                                   {.dim_feedforward = options.dim_feedforward,
                                    .dropout = options.dropout,
                                    .activation = options.activation,
                                    .layer_norm_eps = options.layer_norm_eps,
                                    .batch_first = options.batch_first,
                                    .norm_first = options.norm_first,
                                    .bias = options.bias},
                                   site);
}

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& encoder_layer,
                                       int64_t num_layers, const TransformerEncoderOptions& options,
                                       Site site)
    : norm_(options.norm) {
  const SiteScope scope(site);
  internal::check_sizes("TransformerEncoder", {{"num_layers", num_layers}}, site);
  register_module("layers", layers);
  for (int64_t i = 0; i < num_layers; ++i)
    layers.push_back(encoder_layer.clone());
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerEncoder::forward(const Tensor& src, const EncoderStackCallOptions& call) {
  Tensor x = src;
  for (TransformerEncoderLayer& layer : layers) {
    x = layer(x, EncoderCallOptions{.src_mask = call.mask,
                                    .src_key_padding_mask = call.src_key_padding_mask,
                                    .is_causal = call.is_causal});
  }
  return norm_ ? (*norm_)(x) : x;
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 TransformerDecoderLayerOptions options, Site site)
    : options_(internal::checked_options("TransformerDecoderLayer", d_model, nhead,
                                         std::move(options), site)),
      self_attn_(register_module("self_attn", attention_of(d_model, nhead, options_, site))),
      multihead_attn_(
          register_module("multihead_attn", attention_of(d_model, nhead, options_, site))),
      linear1_(register_module(
          "linear1", Linear(d_model, options_.dim_feedforward, {.bias = options_.bias}, site))),
      dropout_(register_module("dropout", Dropout(options_.dropout, site))),
      linear2_(register_module(
          "linear2", Linear(options_.dim_feedforward, d_model, {.bias = options_.bias}, site))),
      norm1_(register_module("norm1", norm_of(d_model, options_, site))),
      norm2_(register_module("norm2", norm_of(d_model, options_, site))),
      norm3_(register_module("norm3", norm_of(d_model, options_, site))),
      dropout1_(register_module("dropout1", Dropout(options_.dropout, site))),
      dropout2_(register_module("dropout2", Dropout(options_.dropout, site))),
      dropout3_(register_module("dropout3", Dropout(options_.dropout, site))) {}

Tensor TransformerDecoderLayer::attend_to_itself(const Tensor& x, const DecoderCallOptions& call) {
  const AttentionResult result =
      self_attn_(x, x, x,
                 AttentionCallOptions{.key_padding_mask = call.tgt_key_padding_mask,
                                      .need_weights = false,
                                      .attn_mask = call.tgt_mask,
                                      .is_causal = call.tgt_is_causal});
  return dropout1_(result.output);
}

Tensor TransformerDecoderLayer::attend_to_memory(const Tensor& x, const Tensor& memory,
                                                 const DecoderCallOptions& call) {
  const AttentionResult result =
      multihead_attn_(x, memory, memory,
                      AttentionCallOptions{.key_padding_mask = call.memory_key_padding_mask,
                                           .need_weights = false,
                                           .attn_mask = call.memory_mask,
                                           .is_causal = call.memory_is_causal});
  return dropout2_(result.output);
}

Tensor TransformerDecoderLayer::feed(const Tensor& x) {
  return dropout3_(linear2_(dropout_(internal::activate(linear1_(x), options_.activation))));
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const DecoderCallOptions& call) {
  Tensor x = tgt;
  if (options_.norm_first) {
    x = x + attend_to_itself(norm1_(x), call);
    x = x + attend_to_memory(norm2_(x), memory, call);
    return x + feed(norm3_(x));
  }
  x = norm1_(x + attend_to_itself(x, call));
  x = norm2_(x + attend_to_memory(x, memory, call));
  return norm3_(x + feed(x));
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& decoder_layer,
                                       int64_t num_layers, const TransformerDecoderOptions& options,
                                       Site site)
    : norm_(options.norm) {
  const SiteScope scope(site);
  internal::check_sizes("TransformerDecoder", {{"num_layers", num_layers}}, site);
  register_module("layers", layers);
  for (int64_t i = 0; i < num_layers; ++i)
    layers.push_back(decoder_layer.clone());
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const DecoderCallOptions& call) {
  Tensor x = tgt;
  for (TransformerDecoderLayer& layer : layers)
    x = layer(x, memory, call);
  return norm_ ? (*norm_)(x) : x;
}

Transformer::Transformer(const TransformerOptions& options, Site site)
    : encoder(register_module(
          "encoder",
          TransformerEncoder(TransformerEncoderLayer(options.d_model, options.nhead,
                                                     layer_options(options, site), site),
                             options.num_encoder_layers,
                             {.norm = norm_of(options.d_model, layer_options(options, site), site)},
                             site))),
      decoder(register_module(
          "decoder",
          TransformerDecoder(TransformerDecoderLayer(options.d_model, options.nhead,
                                                     layer_options(options, site), site),
                             options.num_decoder_layers,
                             {.norm = norm_of(options.d_model, layer_options(options, site), site)},
                             site))),
      d_model_(options.d_model),
      batch_first_(options.batch_first) {
  const SiteScope scope(site);
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
  }
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt,
                            const TransformerCallOptions& call) {
  const int64_t batch_dim = batch_first_ ? 0 : 1;
  const bool has_batch = src.dim() == 3 && tgt.dim() == 3;
  if ((!has_batch && (src.dim() != 2 || tgt.dim() != 2)) || src.size(-1) != d_model_ ||
      tgt.size(-1) != d_model_ || (has_batch && src.size(batch_dim) != tgt.size(batch_dim))) {
    throw InvalidArgument(str("[Transformer] src and tgt must be sequences of ", d_model_,
                              " features with one batch size; received ", src.meta(), " and ",
                              tgt.meta(), "; the batch is dim ", batch_dim,
                              ", as batch_first says"));
  }
  const Tensor memory =
      encoder(src, EncoderStackCallOptions{.mask = call.src_mask,
                                           .src_key_padding_mask = call.src_key_padding_mask,
                                           .is_causal = call.src_is_causal});
  return decoder(tgt, memory,
                 DecoderCallOptions{.tgt_mask = call.tgt_mask,
                                    .memory_mask = call.memory_mask,
                                    .tgt_key_padding_mask = call.tgt_key_padding_mask,
                                    .memory_key_padding_mask = call.memory_key_padding_mask,
                                    .tgt_is_causal = call.tgt_is_causal,
                                    .memory_is_causal = call.memory_is_causal});
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, const TensorOptions& options,
                                                    Site site) {
  const SiteScope scope(site);
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

}  // namespace flow::nn
