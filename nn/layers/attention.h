// Multi-head attention and a Transformer encoder layer (Vaswani et al. 2017). N is the batch size,
// L and S are the lengths of the query and key sequences, E is embed_dim.
#pragma once

#include <optional>
#include <string>

#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace flow::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // probability of dropping an attention weight in training
  bool bias = true;
  bool add_bias_kv = false;    // append a learned key and value to every sequence
  bool add_zero_attn = false;  // append a key and value of zeros to every sequence
  std::optional<int64_t> kdim = {};
  std::optional<int64_t> vdim = {};
  bool batch_first = false;
};

// Masks follow PyTorch: true in a bool mask excludes a key; a floating mask is added to the scores.
struct AttentionCallOptions {
  Tensor key_padding_mask = {};  // (N, S)
  bool need_weights = true;      // if false, the (L, S) weights are not materialised
  Tensor attn_mask = {};         // (L, S) or (N × num_heads, L, S)
  bool average_attn_weights = true;
  bool is_causal = false;  // query i sees keys 0 … i only; ignored if attn_mask is given
};

struct AttentionResult {
  Tensor output;
  // (N, L, S), or (N, num_heads, L, S) without averaging; undefined without need_weights
  Tensor weights;
};

// query: (L, N, E), key: (S, N, kdim), value: (S, N, vdim); output: (L, N, E). With batch_first the
// first two dims of each are swapped. A single sequence may be given without the dim N; all three
// inputs, the padding mask and the result then lack it. Another number of dims is InvalidArgument,
// and so is an embed_dim that num_heads does not divide, or one of them below 1.
//
// Parameters: in_proj_weight (3 E, E), or q_proj_weight (E, E), k_proj_weight (E, kdim) and
// v_proj_weight (E, vdim) where kdim or vdim differ from E; in_proj_bias (3 E); out_proj; with
// add_bias_kv, bias_k and bias_v (1, 1, E).
class MultiheadAttention : public Module<MultiheadAttention> {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions options = {},
                     Site site = Site::here());
  AttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionCallOptions& call = {});

  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Tensor bias_k, bias_v;

 private:
  struct Projected {
    Tensor q, k, v;  // (N, L or S, E)
  };

  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  // Combines the masks into one that is added to the scores (N, num_heads, L, S + num_extra).
  // Returns an undefined tensor if there is no mask.
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

// Self-attention followed by a feed-forward network. Each branch has dropout, a residual connection
// and a LayerNorm, which is applied after the residual, or before the branch with norm_first. src:
// (L, N, d_model), or (N, L, d_model) with batch_first; the result has the same shape. Sub-modules:
// self_attn, linear1, linear2, norm1, norm2.
class TransformerEncoderLayer : public Module<TransformerEncoderLayer> {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          TransformerEncoderLayerOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& src, const EncoderCallOptions& call = {});

 private:
  Tensor attend(const Tensor& x, const EncoderCallOptions& call);
  Tensor feed(const Tensor& x);

  TransformerEncoderLayerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_;
  Dropout dropout1_, dropout2_;
};

namespace internal {
// Returns the options. Throws InvalidArgument for those that a layer of a Transformer refuses, for
// another activation than "relu" and "gelu", and unless nhead divides d_model.
TransformerEncoderLayerOptions checked_options(const char* layer, int64_t d_model, int64_t nhead,
                                               TransformerEncoderLayerOptions options, Site site);
Tensor activate(const Tensor& x, const std::string& name);
}  // namespace internal

}  // namespace flow::nn
