// GPT-2's network: a decoder-only transformer with LayerNorm before each branch (Radford et al.
// 2019).
#pragma once

#include <string>
#include <vector>

#include "nn/layers/container.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace flow::models {

struct GptOptions {
  int64_t vocab_size = 50257;
  int64_t block_size = 1024;  // the longest sequence
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  double dropout = 0;
  bool bias = true;           // of linear layers and norms
  bool tied = true;           // the output layer is the token embedding
  std::string gelu = "tanh";  // or "none": the error function
};

// Keys and values of the positions a model has seen, by layer: (B, n_head, length, n_embd /
// n_head).
struct GptCache {
  struct Layer {
    Tensor k, v;
  };

  std::vector<Layer> layers = {};
  int64_t length = 0;
};

// Causal self-attention. Holds c_q, c_k, c_v so that heads split by rows; in files they are one,
// c_attn, rows q, k, v.
class GptAttention : public nn::Module<GptAttention> {
 public:
  explicit GptAttention(const GptOptions& options);
  // x: (B, T, n_embd) → the same shape. With a cache, x follows the positions in it and joins them.
  Tensor forward(const Tensor& x, GptCache::Layer* cache = nullptr);

  nn::Linear c_q, c_k, c_v, c_proj;

 private:
  Tensor heads(const Tensor& x) const;

  int64_t n_head_;
  double dropout_p_;
  nn::Dropout dropout_;
};

// c_proj(gelu(c_fc(x))), four times as wide inside.
class GptFeedForward : public nn::Module<GptFeedForward> {
 public:
  explicit GptFeedForward(const GptOptions& options);
  Tensor forward(const Tensor& x);

  nn::Linear c_fc, c_proj;

 private:
  std::string gelu_;
  nn::Dropout dropout_;
};

// x += attn(ln_1(x)); x += mlp(ln_2(x)).
class GptBlock : public nn::Module<GptBlock> {
 public:
  explicit GptBlock(const GptOptions& options);
  Tensor forward(const Tensor& x, GptCache::Layer* cache = nullptr);

  nn::LayerNorm ln_1;
  GptAttention attn;
  nn::LayerNorm ln_2;
  GptFeedForward mlp;
};

// tokens: (B, T) of int64, T <= block_size → logits (B, T, vocab_size). Names: wte, wpe, h.0.ln_1,
// h.0.attn.c_attn, h.0.attn.c_proj, h.0.mlp.c_fc, h.0.mlp.c_proj, …, ln_f, and lm_head.weight
// unless tied. Weights start as N(0, 0.02²), those of c_proj divided by √(2 n_layer), biases at 0.
class Gpt : public nn::Module<Gpt> {
 public:
  explicit Gpt(const GptOptions& options = {});
  // With a cache, tokens follow those in it; all of them together are at most block_size.
  Tensor forward(const Tensor& tokens, GptCache* cache = nullptr);

  const GptOptions& options() const { return options_; }

  nn::Embedding wte, wpe;
  nn::ModuleList<GptBlock> blocks;  // named h
  nn::LayerNorm ln_f;
  Tensor lm_head;  // (vocab_size, n_embd); the embedding's weight when tied

 private:
  GptOptions options_;
  nn::Dropout dropout_;
};

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  double temperature = 1;  // of the softmax; 0: always the likeliest token
  int64_t top_k = 0;       // draw among the k likeliest only; 0: among all
};

// Continues tokens (1, T) by drawing from the model, with a cache: (1, T + max_new_tokens). A
// sequence longer than block_size goes on from its last half block.
Tensor generate(Gpt& model, const Tensor& tokens, const GenerateOptions& options = {});

}  // namespace flow::models
