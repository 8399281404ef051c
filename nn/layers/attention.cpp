#include "nn/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/attention.h"
#include "ops/linear/matmul.h"
#include "ops/norm/softmax.h"
#include "ops/random/dropout.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::nn {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Converts a mask to a tensor of q's dtype that is added to the scores.
Tensor additive(const Tensor& mask, const Tensor& q) {
  if (mask.dtype() != bool_) return mask.dtype() == q.dtype() ? mask : cast(mask, q.dtype());
  return masked_fill(zeros_like(mask, {.dtype = q.dtype()}), mask, -kInfinity);
}

// Throws InvalidArgument unless the mask is bool or floating and has one of the shapes.
void check_mask(const char* name, const Tensor& mask, std::initializer_list<Shape> shapes) {
  const bool has_dtype = mask.dtype() == bool_ || is_floating(mask.dtype());
  const bool has_shape = std::any_of(shapes.begin(), shapes.end(),
                                     [&](const Shape& shape) { return mask.shape() == shape; });
  if (has_dtype && has_shape) return;
  std::string expected;
  for (const Shape& shape : shapes)
    expected += str(expected.empty() ? "" : " or ", shape);
  throw InvalidArgument(str("[MultiheadAttention] ", name, " must be bool or floating, of shape ",
                            expected, "; received ", mask.meta(),
                            "; cast it, or put its dims in this order"));
}

// A causal mask (L, S), where `like` is: true, which excludes the key, above the diagonal.
Tensor future(int64_t num_queries, int64_t num_keys, const Tensor& like) {
  return cast(triu(ones({num_queries, num_keys}, ops::whole_like(like)), 1), bool_);
}

MultiheadAttentionOptions checked(int64_t embed_dim, int64_t num_heads,
                                  MultiheadAttentionOptions options, Site site) {
  constexpr const char* kLayer = "MultiheadAttention";
  internal::check_positive(kLayer, {{"embed_dim", embed_dim}, {"num_heads", num_heads}}, site);
  internal::check_sizes(
      kLayer, {{"kdim", options.kdim.value_or(0)}, {"vdim", options.vdim.value_or(0)}}, site);
  if (embed_dim % num_heads != 0) {
    throw InvalidArgument(
        str("[MultiheadAttention] embed_dim must be divisible by num_heads; received ", embed_dim,
            " and ", num_heads),
        site);
  }
  return options;
}
}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       MultiheadAttentionOptions options, Site site)
    : options_(checked(embed_dim, num_heads, options, site)),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      out_proj_(embed_dim, embed_dim, {.bias = options.bias}, site) {
  const SiteScope scope(site);
  const int64_t kdim = options.kdim.value_or(embed_dim), vdim = options.vdim.value_or(embed_dim);
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = register_parameter("in_proj_weight",
                                        init::xavier_uniform_(empty({3 * embed_dim, embed_dim})));
  } else {
    const auto made = [&](const char* name, int64_t in) {
      return register_parameter(name, init::xavier_uniform_(empty({embed_dim, in})));
    };
    q_proj_weight = made("q_proj_weight", embed_dim);
    k_proj_weight = made("k_proj_weight", kdim);
    v_proj_weight = made("v_proj_weight", vdim);
  }
  in_proj_bias =
      register_parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}) : Tensor());
  register_module("out_proj", out_proj_);
  if (options.bias) init::constant_(out_proj_.bias, 0);
  if (options.add_bias_kv) {
    bias_k = register_parameter("bias_k", init::xavier_normal_(empty({1, 1, embed_dim})));
    bias_v = register_parameter("bias_v", init::xavier_normal_(empty({1, 1, embed_dim})));
  }
}

MultiheadAttention::Projected MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                          const Tensor& value) const {
  std::vector<Tensor> weights{q_proj_weight, k_proj_weight, v_proj_weight};
  if (in_proj_weight.defined()) {
    if (query.is_same(key) && key.is_same(value)) {
      const auto parts = chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
      return {parts[0], parts[1], parts[2]};
    }
    weights = chunk(in_proj_weight, 3, 0);
  }
  std::vector<Tensor> biases(3);
  if (in_proj_bias.defined()) biases = chunk(in_proj_bias, 3, 0);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
          linear(value, weights[2], biases[2])};
}

Tensor MultiheadAttention::merged_mask(const Tensor& q, int64_t num_keys, int64_t num_extra,
                                       const AttentionCallOptions& call) const {
  const int64_t batch = q.size(0), num_queries = q.size(1);
  Tensor mask;
  if (call.attn_mask.defined()) {
    check_mask("attn_mask", call.attn_mask,
               {{num_queries, num_keys}, {batch * num_heads_, num_queries, num_keys}});
    mask = additive(call.attn_mask, q);
    if (mask.dim() == 3) mask = mask.reshape({batch, num_heads_, num_queries, num_keys});
  } else if (call.is_causal) {
    mask = additive(future(num_queries, num_keys, q), q);
  }
  if (call.key_padding_mask.defined()) {
    check_mask("key_padding_mask", call.key_padding_mask, {{batch, num_keys}});
    const Tensor padding = additive(call.key_padding_mask, q).reshape({batch, 1, 1, num_keys});
    mask = mask.defined() ? mask + padding : padding;
  }
  if (mask.defined() && num_extra > 0) mask = pad(mask, {0, num_extra});
  return mask;
}

// (N, L, E) → (N, num_heads, L, E / num_heads).
Tensor MultiheadAttention::heads(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), num_heads_, embed_dim_ / num_heads_}).transpose(1, 2);
}

AttentionResult MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                            const Tensor& value, const AttentionCallOptions& call) {
  const int64_t n = options_.batch_first ? 0 : 1;  // the dim of the batch
  if (query.dim() == 2 && key.dim() == 2 && value.dim() == 2) {
    AttentionCallOptions batched = call;
    if (call.key_padding_mask.defined()) {
      batched.key_padding_mask = call.key_padding_mask.unsqueeze(0);
    }
    AttentionResult result =
        forward(query.unsqueeze(n), key.unsqueeze(n), value.unsqueeze(n), batched);
    result.output = result.output.squeeze(n);
    if (result.weights.defined()) result.weights = result.weights.squeeze(0);
    return result;
  }
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3) {
    throw InvalidArgument(
        str("[MultiheadAttention] query, key and value must all have three dims (a batch of "
            "sequences) or two (one sequence); received ",
            query.meta(), ", ", key.meta(), ", ", value.meta(), "; reshape them"));
  }
  if (key.size(n) != query.size(n) || value.size(n) != query.size(n) ||
      value.size(1 - n) != key.size(1 - n)) {
    throw InvalidArgument(
        str("[MultiheadAttention] query, key and value must have one batch size, dim ", n,
            ", and key and value one length, dim ", 1 - n, "; received ", query.meta(), ", ",
            key.meta(), ", ", value.meta()));
  }
  Projected p = project(query, key, value);
  if (!options_.batch_first) {
    p = {p.q.transpose(0, 1), p.k.transpose(0, 1), p.v.transpose(0, 1)};
  }
  const int64_t batch = p.q.size(0), num_keys = p.k.size(1);
  const auto append = [&](const Tensor& k, const Tensor& v) {
    p.k = cat({p.k, k.expand({batch, 1, embed_dim_})}, 1);
    p.v = cat({p.v, v.expand({batch, 1, embed_dim_})}, 1);
  };
  if (bias_k.defined()) append(bias_k, bias_v);
  if (options_.add_zero_attn) {
    const Tensor zero = zeros_like(narrow(p.k, 1, 0, 1));
    append(zero, zero);
  }
  const int64_t num_extra = p.k.size(1) - num_keys;
  const double dropout_p = is_training() ? options_.dropout : 0;
  const bool only_causal = call.is_causal && !call.attn_mask.defined() &&
                           !call.key_padding_mask.defined() && num_extra == 0;
  const Tensor q = heads(p.q), k = heads(p.k), v = heads(p.v);
  AttentionResult result;
  Tensor y;
  if (!call.need_weights) {
    const Tensor mask = only_causal ? Tensor() : merged_mask(p.q, num_keys, num_extra, call);
    y = scaled_dot_product_attention(
        q, k, v, {.attn_mask = mask, .dropout_p = dropout_p, .is_causal = only_causal});
  } else {
    const int64_t head_dim = embed_dim_ / num_heads_;
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    Tensor scores = matmul(q * scale, k.transpose(-2, -1));
    const Tensor mask = merged_mask(p.q, num_keys, num_extra, call);
    if (mask.defined()) scores = scores + mask;
    Tensor weights = softmax(scores, -1);
    if (dropout_p > 0) weights = dropout(weights, {.p = dropout_p});
    y = matmul(weights, v);
    result.weights = call.average_attn_weights ? weights.mean({1}) : weights;
  }
  y = y.transpose(1, 2).reshape({batch, p.q.size(1), embed_dim_});
  result.output = out_proj_(options_.batch_first ? y : y.transpose(0, 1));
  return result;
}

namespace internal {

TransformerEncoderLayerOptions checked_options(const char* layer, int64_t d_model, int64_t nhead,
                                               TransformerEncoderLayerOptions options, Site site) {
  check_positive(layer, {{"d_model", d_model}, {"nhead", nhead}}, site);
  check_sizes(layer, {{"dim_feedforward", options.dim_feedforward}}, site);
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument(str("[", layer, "] ", what), site);
  };
  if (d_model % nhead != 0) {
    refuse(str("d_model must be divisible by nhead; received ", d_model, " and ", nhead));
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    refuse(str("dropout must be a probability from 0 to 1; received ", options.dropout));
  }
  if (options.activation != "relu" && options.activation != "gelu") {
    refuse(
        str("the activation is unknown; received '", options.activation, "'; give relu or gelu"));
  }
  return options;
}

Tensor activate(const Tensor& x, const std::string& name) {
  return name == "relu" ? relu(x) : gelu(x);
}

}  // namespace internal

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 TransformerEncoderLayerOptions options, Site site)
    : options_(internal::checked_options("TransformerEncoderLayer", d_model, nhead,
                                         std::move(options), site)),
      self_attn_(
          register_module("self_attn", MultiheadAttention(d_model, nhead,
                                                          {.dropout = options_.dropout,
                                                           .bias = options_.bias,
                                                           .batch_first = options_.batch_first},
                                                          site))),
      linear1_(register_module(
          "linear1", Linear(d_model, options_.dim_feedforward, {.bias = options_.bias}, site))),
      dropout_(register_module("dropout", Dropout(options_.dropout, site))),
      linear2_(register_module(
          "linear2", Linear(options_.dim_feedforward, d_model, {.bias = options_.bias}, site))),
      norm1_(register_module(
          "norm1",
          LayerNorm({d_model}, {.eps = options_.layer_norm_eps, .bias = options_.bias}, site))),
      norm2_(register_module(
          "norm2",
          LayerNorm({d_model}, {.eps = options_.layer_norm_eps, .bias = options_.bias}, site))),
      dropout1_(register_module("dropout1", Dropout(options_.dropout, site))),
      dropout2_(register_module("dropout2", Dropout(options_.dropout, site))) {}

Tensor TransformerEncoderLayer::attend(const Tensor& x, const EncoderCallOptions& call) {
  const AttentionResult result = self_attn_(x, x, x,
                                            AttentionCallOptions{
                                                .key_padding_mask = call.src_key_padding_mask,
                                                .need_weights = false,
                                                .attn_mask = call.src_mask,
                                                .is_causal = call.is_causal,
                                            });
  return dropout1_(result.output);
}

Tensor TransformerEncoderLayer::feed(const Tensor& x) {
  return dropout2_(linear2_(dropout_(internal::activate(linear1_(x), options_.activation))));
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderCallOptions& call) {
  if (options_.norm_first) {
    const Tensor x = src + attend(norm1_(src), call);
    return x + feed(norm2_(x));
  }
  const Tensor x = norm1_(src + attend(src, call));
  return norm2_(x + feed(x));
}

}  // namespace flow::nn
