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

struct MarginOptions {
  double margin = 0;
  std::string reduction = "mean";
};

// max(0, margin - target (a - b)): target 1 wants a to be the larger, -1 the smaller.
Tensor margin_ranking_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                           const MarginOptions& options = {});

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;  // the negative may lie nearer to the positive than to the anchor
  std::string reduction = "mean";
};

// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d as pairwise_distance (Balntas
// et al. 2016).
Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive,
                           const TensorArg& negative, const TripletOptions& options = {});

struct CombinedMarginOptions {
  double m1 = 1;
  double m2 = 0;
  double m3 = 0;
};

// Cosines (N, C) of angles between features and class centres, with cos(m1 angle + m2) - m3 in
// place of the one at each row's label: what cross_entropy of them, scaled, then has to exceed (Liu
// et al. 2017: m1; Deng et al. 2019: m2; Wang et al. 2018: m3). label: (N), int32 or int64.
Tensor combined_margin_loss(const TensorArg& input, const TensorArg& label,
                            const CombinedMarginOptions& options = {});

}  // namespace flow
