// GPT-2: a decoder-only Transformer with a LayerNorm before each branch (Radford et al. 2019). B is
// the batch size, T the length of the sequences.
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
  int64_t block_size = 1024;  // the longest sequence, in tokens
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  double dropout = 0;
  bool bias = true;           // whether linear layers and norms have a bias
  bool tied = true;           // the output layer uses the weight of the token embedding
  std::string gelu = "tanh";  // tanh approximation, or "none": exact, with the error function
};

// The keys and values of the positions that a model has seen, by layer: (B, n_head, length, n_embd
// / n_head).
struct GptCache {
  struct Layer {
    Tensor k, v;
  };

  std::vector<Layer> layers = {};
  int64_t length = 0;
};

// Causal self-attention. The projections c_q, c_k and c_v are separate so that their rows can be
// split by head; in files they are one tensor, c_attn, with the rows of q, k and v in this order.
// An n_embd that n_head does not divide is InvalidArgument, and so are negative sizes, a dropout
// that is no probability and another gelu, here as for the other parts and the model.
class GptAttention : public nn::Module<GptAttention> {
 public:
  explicit GptAttention(const GptOptions& options, Site site = Site::here());
  // x: (B, T, n_embd) → the same shape. With a cache, the positions in x follow those in the cache
  // and are appended to it.
  Tensor forward(const Tensor& x, GptCache::Layer* cache = nullptr);

  nn::Linear c_q, c_k, c_v, c_proj;

 private:
  Tensor heads(const Tensor& x) const;

  int64_t n_head_;
  double dropout_p_;
  nn::Dropout dropout_;
};

// The feed-forward branch: c_proj(gelu(c_fc(x))) with 4 n_embd hidden features.
class GptFeedForward : public nn::Module<GptFeedForward> {
 public:
  explicit GptFeedForward(const GptOptions& options, Site site = Site::here());
  Tensor forward(const Tensor& x);

  nn::Linear c_fc, c_proj;

 private:
  std::string gelu_;
  nn::Dropout dropout_;
};

// One layer: x += attn(ln_1(x)); x += mlp(ln_2(x)).
class GptBlock : public nn::Module<GptBlock> {
 public:
  explicit GptBlock(const GptOptions& options, Site site = Site::here());
  Tensor forward(const Tensor& x, GptCache::Layer* cache = nullptr);

  nn::LayerNorm ln_1;
  GptAttention attn;
  nn::LayerNorm ln_2;
  GptFeedForward mlp;
};

// The model. tokens: (B, T), int64, T <= block_size → logits: (B, T, vocab_size). Parameters are
// named wte, wpe, h.0.ln_1, h.0.attn.c_attn, h.0.attn.c_proj, h.0.mlp.c_fc, h.0.mlp.c_proj, …,
// ln_f, and lm_head.weight unless `tied`. Weights are initialised as N(0, 0.02²), those of c_proj
// divided by √(2 n_layer); biases are initialised to 0.
class Gpt : public nn::Module<Gpt> {
 public:
  explicit Gpt(const GptOptions& options = {}, Site site = Site::here());
  // With a cache, tokens follow those already in the cache, and T plus their number is at most
  // block_size. Throws InvalidArgument for another shape or a longer sequence.
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
  double temperature = 1;  // divides the logits; 0: always take the most likely token
  int64_t top_k = 0;       // sample from the k most likely tokens only; 0: from all
};

// Continues one sequence: samples max_new_tokens tokens from the model, with a cache. tokens: (1,
// T), T > 0 → (1, T + max_new_tokens). When the sequence exceeds block_size, the model starts again
// from the last block_size / 2 tokens. Runs in evaluation mode without gradients and restores the
// mode. Throws InvalidArgument for another shape or a negative option.
Tensor generate(Gpt& model, const Tensor& tokens, const GenerateOptions& options = {},
                Site site = Site::here());

}  // namespace flow::models
