#include "nn/loss.h"

#include "core/error.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/where.h"

namespace flow::nn {

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) {
  return l1_loss(input, target, options_);
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return mse_loss(input, target, options_);
}

Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return smooth_l1_loss(input, target, options_);
}

Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return huber_loss(input, target, options_);
}

Tensor BCELoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, target, options_);
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, target, options_);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  return kl_div(input, target, options_);
}

Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  return nll_loss(input, target, options_);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy(input, target, options_);
}

Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2,
                                  const Tensor& target) {
  // clamp, as PyTorch: where the loss is exactly 0 its gradient passes.
  const Tensor loss = clamp((input2 - input1) * target + options_.margin, {.min = 0.0});
  if (options_.reduction == "mean") return mean(loss);
  if (options_.reduction == "sum") return sum(loss);
  if (options_.reduction == "none") return loss;
  throw InvalidArgument(str("[MarginRankingLoss] reduction '", options_.reduction,
                            "' is unknown; use mean, sum or none"));
}

}  // namespace flow::nn
