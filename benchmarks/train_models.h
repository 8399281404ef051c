// The models whose training is measured, and the work that one of their steps cannot do without.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/models/gpt.h"

namespace flow::bench {

// A matrix product of a step, op(A) (m, k) by op(B) (k, n).
struct StepProduct {
  bool transpose_a;
  bool transpose_b;
  int64_t m, n, k;
  int64_t count;  // in a step
};

// How a model that every rank has is trained: by itself, under DistributedDataParallel, or by
// itself as a compiled graph; the last two with the activations of GPT's blocks computed again.
enum class Copies { kAlone, kAveraged, kCompiled, kRecomputed, kCompiledRecomputed };

// Names: mlp64, mlp512, lenet, mbv2, gpt-char, gpt-small.
struct TrainModel {
  std::string name;
  // 2 per multiply-add of matrix products, convolutions (padding not counted) and attention (the
  // causal half), forward and twice as much backward, less the gradient of the model's input.
  double flops = 0;
  // Bytes that any step holds at its end of forward: gradients, and what the backward of linear
  // layers, norms, gelu and attention reads. 0 where it is not reported.
  double held_bytes = 0;
  // The same where blocks keep their inputs only and one is computed again.
  double recompute_held_bytes = 0;
  // Of its linear layers; empty where they are not most of the work.
  std::vector<StepProduct> products = {};
  // Makes model, optimizer and one batch; each call of the result is a step: forward, loss,
  // backward, update, gradients dropped.
  std::function<std::function<void()>(Copies)> make_step;
};

std::vector<TrainModel> train_models();

// The model of gpt-char, trained with AdamW on kGptCharBatch samples.
models::GptOptions gpt_char_options();
constexpr int64_t kGptCharBatch = 16;

}  // namespace flow::bench
