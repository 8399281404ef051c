// Losses that compare two tensors element by element. Input and target are floating and broadcast
// to one shape. `reduction` is "mean" (over all elements), "sum" or "none" (one loss an element).
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct LossOptions {
  std::string reduction = "mean";
  Tensor weight = {};  // of each element, shape of the input; the mean divides by its sum
};

// (input - target)^2.  mse_loss(model(x), y).backward()
Tensor mse_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options = {});

// |input - target|.
Tensor l1_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options = {});

struct SmoothL1Options {
  std::string reduction = "mean";
  double beta = 1;
};

// With d = |input - target|: d^2 / (2 beta) where d < beta, else d - beta / 2. beta >= 0; 0 is
// l1_loss.
Tensor smooth_l1_loss(const TensorArg& input, const TensorArg& target,
                      const SmoothL1Options& options = {});

struct HuberOptions {
  std::string reduction = "mean";
  double delta = 1;
  Tensor weight = {};  // of each element, shape of the input; the mean divides by their number
};

// With d = |input - target|: d^2 / 2 where d <= delta, else delta (d - delta / 2). delta > 0.
Tensor huber_loss(const TensorArg& input, const TensorArg& target,
                  const HuberOptions& options = {});

struct BceOptions {
  Tensor weight = {};  // of each element; broadcasts to the loss
  std::string reduction = "mean";
};

// -(target log(input) + (1 - target) log(1 - input)) for probabilities; logarithms are at least
// -100, so that the loss stays finite. Input outside [0, 1] is an error.
Tensor binary_cross_entropy(const TensorArg& input, const TensorArg& target,
                            const BceOptions& options = {});

struct BceWithLogitsOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};  // factor of the target's term; broadcasts to the input
};

// binary_cross_entropy of sigmoid(input), as (1 - target) input + log(1 + exp(-input)) in a form
// that does not overflow.
Tensor binary_cross_entropy_with_logits(const TensorArg& input, const TensorArg& target,
                                        const BceWithLogitsOptions& options = {});

struct KlDivOptions {
  std::string reduction = "mean";  // also "batchmean": the sum over the size of dim 0
  bool log_target = false;
};

// target (log(target) - input) with `input` a log-probability, 0 where target is 0; with
// log_target, exp(target) (target - input). "mean" divides by the number of elements.
Tensor kl_div(const TensorArg& input, const TensorArg& target, const KlDivOptions& options = {});

}  // namespace flow
