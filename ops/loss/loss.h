// Losses that compare two tensors element by element. Input and target are floating and broadcast
// to a common shape. `reduction` is "mean" (over all elements), "sum" or "none" (a loss for each
// element).
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct LossOptions {
  std::string reduction = "mean";
  Tensor weight = {};  // per element, shape of the input; the mean divides by its sum
};

// The squared error (input - target)^2.  mse_loss(model(x), y).backward()
Tensor mse_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options = {});

// The absolute error |input - target|.
Tensor l1_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options = {});

struct SmoothL1Options {
  std::string reduction = "mean";
  double beta = 1;
};

// With d = |input - target|: d^2 / (2 beta) where d < beta, else d - beta / 2. Requires: beta >= 0;
// beta = 0 gives l1_loss.
Tensor smooth_l1_loss(const TensorArg& input, const TensorArg& target,
                      const SmoothL1Options& options = {});

struct HuberOptions {
  std::string reduction = "mean";
  double delta = 1;
  Tensor weight = {};  // per element, shape of the input; the mean divides by their number
};

// With d = |input - target|: d^2 / 2 where d <= delta, else delta (d - delta / 2) (Huber 1964).
// Requires: delta > 0. As in PyTorch, the loss has the dtype of the input.
Tensor huber_loss(const TensorArg& input, const TensorArg& target,
                  const HuberOptions& options = {});

struct BceOptions {
  Tensor weight = {};  // per element; broadcasts to the loss
  std::string reduction = "mean";
};

// -(target log(input) + (1 - target) log(1 - input)) for probabilities. Logarithms are clamped to
// at least -100, so the loss is finite. An input outside [0, 1] is an error.
Tensor binary_cross_entropy(const TensorArg& input, const TensorArg& target,
                            const BceOptions& options = {});

struct BceWithLogitsOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};  // factor of the target's term; broadcasts to the input
};

// binary_cross_entropy of sigmoid(input), computed as (1 - target) input + log(1 + exp(-input)) in
// a form that does not overflow. As in PyTorch, the loss has the dtype of the target.
Tensor binary_cross_entropy_with_logits(const TensorArg& input, const TensorArg& target,
                                        const BceWithLogitsOptions& options = {});

struct KlDivOptions {
  std::string reduction = "mean";  // also "batchmean": the sum over the size of dim 0
  bool log_target = false;
};

// The Kullback-Leibler divergence target (log(target) - input) of a log-probability `input`; it is
// 0 where target is 0. With log_target it is exp(target) (target - input). "mean" divides by the
// number of elements.
Tensor kl_div(const TensorArg& input, const TensorArg& target, const KlDivOptions& options = {});

}  // namespace flow
