// The models whose training is measured, and the minimum work of one of their steps.
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
  int64_t count;  // the number of such products in a step
};

// How each rank trains its copy of a model: separately, under DistributedDataParallel, or in these
// two ways as a compiled graph. The last two values train separately and compute the activations of
// GPT's blocks again.
enum class Copies {
  kAlone,
  kAveraged,
  kCompiled,
  kCompiledAveraged,
  kRecomputed,
  kCompiledRecomputed
};

// Names: mlp64, mlp512, lenet, mbv2, gpt-char, gpt-small.
struct TrainModel {
  std::string name;
  // 2 operations per multiply-add of matrix products, convolutions (without padding) and attention
  // (the causal half), in forward and twice as many in backward, without the gradient of the
  // model's input.
  double flops = 0;
  // The bytes that any step holds at the end of forward: gradients, and the values that the
  // backward of linear layers, norms, gelu and attention reads. 0 if it is not reported.
  double held_bytes = 0;
  // The same if blocks keep only their inputs and one block at a time is computed again.
  double recompute_held_bytes = 0;
  // The products of its linear layers. Empty if they are not most of the work.
  std::vector<StepProduct> products = {};
  // Makes the model, the optimizer and one batch. Each call of the result runs a step: forward,
  // loss, backward, update, and removal of the gradients.
  std::function<std::function<void()>(Copies)> make_step;
};

std::vector<TrainModel> train_models();

// The model of gpt-char, trained with AdamW on kGptCharBatch samples.
models::GptOptions gpt_char_options();
constexpr int64_t kGptCharBatch = 16;

}  // namespace flow::bench
