// Multi-head attention and the encoder layer made of it (Vaswani et al. 2017).
#pragma once

#include <optional>
#include <string>

#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace flow::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // of the attention weights, in training
  bool bias = true;
  bool add_bias_kv = false;    // one more learned key and value
  bool add_zero_attn = false;  // one more key and value of zeros
  std::optional<int64_t> kdim = {};
  std::optional<int64_t> vdim = {};
  bool batch_first = false;
};

// Masks are PyTorch's: bool, true is left out; or floating, added to the scores.
struct AttentionCallOptions {
  Tensor key_padding_mask = {};  // (N, S)
  bool need_weights = true;      // without, the weights are never stored as a whole
  Tensor attn_mask = {};         // (L, S) or (N × num_heads, L, S)
  bool average_attn_weights = true;
  bool is_causal = false;  // query i sees keys 0 … i
};

struct AttentionResult {
  Tensor output;
  Tensor weights;  // (N, L, S), or (N, num_heads, L, S) when not averaged; undefined if not needed
};

// query: (L, N, E), key: (S, N, kdim), value: (S, N, vdim), with batch_first the first two dims
// swapped, or all of them and what belongs to them without N → output like query. Parameters:
// in_proj_weight (3 E, E) and in_proj_bias, or q_proj_weight, k_proj_weight, v_proj_weight where
// kdim or vdim differ from E; out_proj; bias_k, bias_v (1, 1, E).
class MultiheadAttention : public Module<MultiheadAttention> {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions options = {});
  AttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionCallOptions& call = {});

  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Tensor bias_k, bias_v;

 private:
  struct Projected {
    Tensor q, k, v;  // (N, L or S, E)
  };

  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  // The masks as one that is added to scores (N, num_heads, L, S + extra); undefined without masks.
  Tensor merged_mask(const Tensor& q, int64_t num_keys, int64_t num_extra,
                     const AttentionCallOptions& call) const;
  Tensor heads(const Tensor& x) const;

  MultiheadAttentionOptions options_;
  int64_t embed_dim_, num_heads_;
  Linear out_proj_;
};

struct TransformerEncoderLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct EncoderCallOptions {
  Tensor src_mask = {};
  Tensor src_key_padding_mask = {};
  bool is_causal = false;
};

// Attention and a feed-forward net, each with dropout, a residual and a LayerNorm (after the
// residual, or with norm_first before the branch). Sub-modules: self_attn, linear1, linear2, norm1,
// norm2.
class TransformerEncoderLayer : public Module<TransformerEncoderLayer> {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          TransformerEncoderLayerOptions options = {});
  Tensor forward(const Tensor& src, const EncoderCallOptions& call = {});

 private:
  Tensor attend(const Tensor& x, const EncoderCallOptions& call);
  Tensor feed(const Tensor& x);

  TransformerEncoderLayerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_;
  Dropout dropout_, dropout1_, dropout2_;
};

}  // namespace flow::nn
