#include "nn/models/gpt.h"

#include <algorithm>
#include <cmath>

#include "boxing/redistribute.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/index/sort.h"
#include "ops/linear/attention.h"
#include "ops/linear/matmul.h"
#include "ops/norm/softmax.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::models {

namespace {
constexpr double kDeviation = 0.02;

// Returns the options.
const GptOptions& checked(const GptOptions& options, Site site) {
  nn::internal::check_sizes("Gpt",
                            {{"vocab_size", options.vocab_size},
                             {"block_size", options.block_size},
                             {"n_layer", options.n_layer},
                             {"n_embd", options.n_embd}},
                            site);
  if (options.n_head <= 0 || options.n_embd % options.n_head != 0) {
    throw InvalidArgument(str("[Gpt] n_embd must be divisible by n_head; received ", options.n_embd,
                              " and ", options.n_head),
                          site);
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw InvalidArgument(
        str("[Gpt] dropout must be a probability from 0 to 1; received ", options.dropout), site);
  }
  if (options.gelu != "tanh" && options.gelu != "none") {
    throw InvalidArgument(
        str("[Gpt] unknown gelu; received '", options.gelu, "'; use tanh or none"), site);
  }
  return options;
}

nn::Linear make_linear(int64_t in, int64_t out, const GptOptions& options, bool is_residual) {
  nn::Linear layer(in, out, {.bias = options.bias});
  const double branches = 2 * static_cast<double>(options.n_layer);
  nn::init::normal_(layer.weight, 0, is_residual ? kDeviation / std::sqrt(branches) : kDeviation);
  if (options.bias) nn::init::constant_(layer.bias, 0);
  return layer;
}

nn::Embedding make_embedding(int64_t rows, int64_t width) {
  nn::Embedding table(rows, width);
  nn::init::normal_(table.weight, 0, kDeviation);
  return table;
}

nn::ModuleList<GptBlock> make_blocks(const GptOptions& options) {
  nn::ModuleList<GptBlock> blocks;
  for (int64_t i = 0; i < options.n_layer; ++i)
    blocks.push_back(GptBlock(options));
  return blocks;
}

// Holds only the weight, so that it is named lm_head.weight.
struct Head : nn::Module<Head> {
  explicit Head(const Tensor& value) : weight(register_parameter("weight", value)) {}

  Tensor weight;
};
}  // namespace

GptAttention::GptAttention(const GptOptions& options, Site site)
    : c_q(register_module(
          "c_q", make_linear(options.n_embd, options.n_embd, checked(options, site), false))),
      c_k(register_module("c_k", make_linear(options.n_embd, options.n_embd, options, false))),
      c_v(register_module("c_v", make_linear(options.n_embd, options.n_embd, options, false))),
      c_proj(register_module("c_proj", make_linear(options.n_embd, options.n_embd, options, true))),
      n_head_(options.n_head),
      dropout_p_(options.dropout),
      dropout_(register_module("resid_dropout", nn::Dropout(options.dropout))) {
  const SiteScope scope(site);
  join_in_files("c_attn.weight", {"c_q.weight", "c_k.weight", "c_v.weight"});
  if (options.bias) join_in_files("c_attn.bias", {"c_q.bias", "c_k.bias", "c_v.bias"});
}

// (B, T, C) → (B, n_head, T, C / n_head).
Tensor GptAttention::heads(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), n_head_, x.size(2) / n_head_}).transpose(1, 2);
}

Tensor GptAttention::forward(const Tensor& x, GptCache::Layer* cache) {
  const Tensor q = heads(c_q(x));
  Tensor k = heads(c_k(x)), v = heads(c_v(x));
  AttentionOptions options{.dropout_p = is_training() ? dropout_p_ : 0, .is_causal = true};
  if (cache != nullptr) {
    if (cache->k.defined()) {
      const int64_t seen = cache->k.size(2);
      k = cat({cache->k, k}, 2);
      v = cat({cache->v, v}, 2);
      // Query i is at position seen + i and may attend to keys up to that position.
      options.is_causal = false;
      if (x.size(1) > 1)
        options.attn_mask = cast(tril(ones({x.size(1), k.size(2)}, options_like(x)), seen), bool_);
    }
    *cache = {k, v};
  }
  const Tensor y = scaled_dot_product_attention(q, k, v, options);
  return dropout_(c_proj(y.transpose(1, 2).reshape(x.shape())));
}

GptFeedForward::GptFeedForward(const GptOptions& options, Site site)
    : c_fc(register_module(
          "c_fc", make_linear(options.n_embd, 4 * options.n_embd, checked(options, site), false))),
      c_proj(register_module("c_proj",
                             make_linear(4 * options.n_embd, options.n_embd, options, true))),
      gelu_(options.gelu),
      dropout_(register_module("dropout", nn::Dropout(options.dropout))) {}

Tensor GptFeedForward::forward(const Tensor& x) {
  return dropout_(c_proj(gelu(c_fc(x), {.approximate = gelu_})));
}

GptBlock::GptBlock(const GptOptions& options, Site site)
    : ln_1(register_module("ln_1",
                           nn::LayerNorm({checked(options, site).n_embd}, {.bias = options.bias}))),
      attn(register_module("attn", GptAttention(options))),
      ln_2(register_module("ln_2", nn::LayerNorm({options.n_embd}, {.bias = options.bias}))),
      mlp(register_module("mlp", GptFeedForward(options))) {}

Tensor GptBlock::forward(const Tensor& x, GptCache::Layer* cache) {
  const Tensor z = ln_1(x);
  const Tensor y = x + (cache != nullptr ? attn(z, cache) : attn(z));
  return y + mlp(ln_2(y));
}

Gpt::Gpt(const GptOptions& options, Site site)
    : wte(register_module("wte",
                          make_embedding(checked(options, site).vocab_size, options.n_embd))),
      wpe(register_module("wpe", make_embedding(options.block_size, options.n_embd))),
      blocks(register_module("h", make_blocks(options))),
      ln_f(register_module("ln_f", nn::LayerNorm({options.n_embd}, {.bias = options.bias}))),
      lm_head(wte.weight),
      options_(options),
      dropout_(register_module("drop", nn::Dropout(options.dropout))) {
  if (options.tied) return;
  const Tensor value = empty({options.vocab_size, options.n_embd});
  nn::init::normal_(value, 0, kDeviation);
  lm_head = register_module("lm_head", Head(value)).weight;
}

Tensor Gpt::forward(const Tensor& tokens, GptCache* cache) {
  const int64_t seen = cache != nullptr ? cache->length : 0;
  if (tokens.dim() != 2 || seen + tokens.size(1) > options_.block_size) {
    throw InvalidArgument(
        str("[Gpt] tokens must be (B, T) with T at most block_size = ", options_.block_size,
            " minus the ", seen, " positions in the cache; received ", tokens.meta(),
            "; give fewer tokens or a larger block_size"));
  }
  Tensor x = dropout_(wte(tokens) + narrow(wpe.weight, 0, seen, tokens.size(1)));
  if (cache != nullptr) {
    cache->layers.resize(static_cast<size_t>(blocks.size()));
    cache->length += tokens.size(1);
  }
  // Without a cache a block maps one tensor to one tensor, so a graph can recompute it.
  for (int64_t i = 0; i < blocks.size(); ++i)
    x = cache != nullptr ? blocks[i](x, &cache->layers[static_cast<size_t>(i)]) : blocks[i](x);
  x = ln_f(x);
  // A tied weight is stored with the embedding, which may be in another stage of a pipeline.
  const bool is_apart =
      x.is_global() && lm_head.is_global() && x.placement() != lm_head.placement();
  return linear(x, is_apart ? lm_head.to_global({.placement = x.placement()}) : lm_head);
}

namespace {
// Inverse transform sampling: the index in `chances`, which sum to 1, that `draw` in [0, 1)
// selects.
int64_t place_of(double draw, const std::vector<double>& chances) {
  size_t i = 0;
  while (i + 1 < chances.size() && (draw -= chances[i]) >= 0)
    ++i;
  return static_cast<int64_t>(i);
}
}  // namespace

Tensor generate(Gpt& model, const Tensor& tokens, const GenerateOptions& options, Site site) {
  const SiteScope scope(site);
  if (tokens.dim() != 2 || tokens.size(0) != 1 || tokens.size(1) == 0 || options.temperature < 0 ||
      options.top_k < 0 || options.max_new_tokens < 0) {
    throw InvalidArgument(
        str("[generate] tokens must be (1, T) with T > 0, and no option may be negative; "
            "received ",
            tokens.meta(), ", temperature ", options.temperature, ", top_k ", options.top_k,
            ", max_new_tokens ", options.max_new_tokens, "; give one sequence and options >= 0"));
  }
  const NoGradGuard no_grad;

  struct Evaluation {
    Gpt& model;
    bool was_training = model.is_training();

    ~Evaluation() { model.train(was_training); }
  } const evaluation{model};

  model.eval();
  const int64_t block = model.options().block_size;
  std::vector<int64_t> text = tokens.to_vector<int64_t>();
  TensorOptions layout;  // tokens and random draws are the same on every rank
  if (tokens.is_global()) {
    layout.placement = tokens.placement();
    layout.sbp = NdSbp::broadcast(layout.placement.num_axes());
  }
  TensorOptions doubles = layout;
  doubles.dtype = float64;
  const std::vector<double> draws = rand({options.max_new_tokens}, doubles).to_vector<double>();
  const int64_t half = std::max<int64_t>(1, block / 2);
  // Number of tokens that the model has not seen yet.
  int64_t fresh = tokens.size(1) <= block ? tokens.size(1) : half;
  GptCache cache;
  for (const double draw : draws) {
    if (cache.length + fresh > block) {
      cache = {};
      fresh = half;
    }
    const std::vector<int64_t> next(text.end() - fresh, text.end());
    Tensor logits =
        model(tensor(next, {1, fresh}, layout), &cache).select(1, fresh - 1).select(0, 0);
    fresh = 1;
    if (options.temperature == 0) {
      text.push_back(argmax(logits, 0).item<int64_t>());
      continue;
    }
    logits = logits / options.temperature;
    if (options.top_k == 0 || options.top_k >= logits.numel()) {
      text.push_back(place_of(draw, softmax(logits, 0).to_vector<double>()));
    } else {
      const ValuesIndices best = topk(logits, options.top_k, {.dim = 0});
      const int64_t i = place_of(draw, softmax(best.values, 0).to_vector<double>());
      text.push_back(best.indices.to_vector<int64_t>()[static_cast<size_t>(i)]);
    }
  }
  return tensor(text, {1, static_cast<int64_t>(text.size())}, layout);
}

}  // namespace flow::models
