#include "nn/loss.h"

namespace flow::nn {

Tensor CrossEntropyLoss::forward(const Tensor& logits, const Tensor& target) {
  return cross_entropy(logits, target, options_);
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return mse_loss(input, target, options_);
}

}  // namespace flow::nn
