// The Transformer (Vaswani et al. 2017): stacks of encoder and decoder layers. N is the batch size,
// S and T are the lengths of the source and target sequences, E is d_model. Sequences are (S, N,
// E), or (N, S, E) with batch_first, or (S, E) for one sequence. Masks are those of
// MultiheadAttention: true in a bool mask excludes a key; a floating mask is added to the scores.
#pragma once

#include <optional>
#include <string>

#include "nn/layers/attention.h"
#include "nn/layers/container.h"

namespace flow::nn {

struct TransformerEncoderOptions {
  std::optional<AnyModule> norm = {};  // applied to the result of the last layer
};

struct EncoderStackCallOptions {
  Tensor mask = {};                  // (S, S) or (N × nhead, S, S)
  Tensor src_key_padding_mask = {};  // (N, S)
  bool is_causal = false;            // position i sees 0 … i only; ignored if mask is given
};

// num_layers layers, one after another. Each is a clone of encoder_layer, so all begin with its
// values. src → the same shape. Sub-modules: layers.0, layers.1, …, norm.
//   nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(512, 8), 6);
class TransformerEncoder : public Module<TransformerEncoder> {
 public:
  TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                     const TransformerEncoderOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& src, const EncoderStackCallOptions& call = {});

  ModuleList<TransformerEncoderLayer> layers;

 private:
  std::optional<AnyModule> norm_;
};

struct DecoderCallOptions {
  Tensor tgt_mask = {};                 // (T, T) or (N × nhead, T, T)
  Tensor memory_mask = {};              // (T, S) or (N × nhead, T, S)
  Tensor tgt_key_padding_mask = {};     // (N, T)
  Tensor memory_key_padding_mask = {};  // (N, S)
  bool tgt_is_causal = false;           // ignored if tgt_mask is given
  bool memory_is_causal = false;        // ignored if memory_mask is given
};

using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

// Self-attention of the target, attention to `memory`, the encoder's result, and a feed-forward
// network. Each branch has dropout, a residual connection and a LayerNorm, which is applied after
// the residual, or before the branch with norm_first. tgt → the same shape. Sub-modules: self_attn,
// multihead_attn, linear1, dropout, linear2, norm1 to norm3, dropout1 to dropout3.
class TransformerDecoderLayer : public Module<TransformerDecoderLayer> {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          TransformerDecoderLayerOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderCallOptions& call = {});

 private:
  Tensor attend_to_itself(const Tensor& x, const DecoderCallOptions& call);
  Tensor attend_to_memory(const Tensor& x, const Tensor& memory, const DecoderCallOptions& call);
  Tensor feed(const Tensor& x);

  TransformerDecoderLayerOptions options_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_, norm3_;
  Dropout dropout1_, dropout2_, dropout3_;
};

using TransformerDecoderOptions = TransformerEncoderOptions;

// num_layers clones of decoder_layer, one after another, and a norm. tgt → the same shape.
// Sub-modules: layers.0, layers.1, …, norm.
class TransformerDecoder : public Module<TransformerDecoder> {
 public:
  TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                     const TransformerDecoderOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderCallOptions& call = {});

  ModuleList<TransformerDecoderLayer> layers;

 private:
  std::optional<AnyModule> norm_;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct TransformerCallOptions {
  Tensor src_mask = {};
  Tensor tgt_mask = {};
  Tensor memory_mask = {};
  Tensor src_key_padding_mask = {};
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool src_is_causal = false;
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};

// An encoder and a decoder, each with a LayerNorm at its end: decoder(tgt, encoder(src)), of the
// shape of tgt. Matrices are initialised by xavier_uniform_. Sub-modules: encoder, decoder.
//   nn::Transformer model({.d_model = 32, .nhead = 4, .batch_first = true});
//   const Tensor mask = nn::Transformer::generate_square_subsequent_mask(tgt.size(1));
//   const Tensor y = model(src, tgt, nn::TransformerCallOptions{.tgt_mask = mask});
class Transformer : public Module<Transformer> {
 public:
  explicit Transformer(const TransformerOptions& options = {}, Site site = Site::here());
  // Throws InvalidArgument if the batch sizes differ, or if the last dim is not d_model.
  Tensor forward(const Tensor& src, const Tensor& tgt, const TransformerCallOptions& call = {});

  // (size, size): 0, and -∞ above the diagonal.
  static Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {},
                                                Site site = Site::here());

  TransformerEncoder encoder;
  TransformerDecoder decoder;

 private:
  int64_t d_model_;
  bool batch_first_;
};

}  // namespace flow::nn
