// Losses as modules; the formulas stand at the functions in ops/loss.h and
// ops/cross_entropy.h.
#pragma once

#include "nn/module.h"
#include "ops/cross_entropy.h"
#include "ops/loss.h"

namespace flow::nn {

// logits: (N, C, …), target: (N, …) of class indices or (N, C, …) of probabilities.
class CrossEntropyLoss : public Module<CrossEntropyLoss> {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& logits, const Tensor& target);

 private:
  CrossEntropyOptions options_;
};

class MSELoss : public Module<MSELoss> {
 public:
  explicit MSELoss(LossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  LossOptions options_;
};

}  // namespace flow::nn
