// Losses of margins and likelihoods, made of other functions. `reduction` as in ops/loss/loss.h.
#pragma once

#include <functional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct HingeOptions {
  double margin = 1;
  std::string reduction = "mean";
};

// input where target is 1, max(0, margin - input) where it is -1: of distances.
Tensor hinge_embedding_loss(const TensorArg& input, const TensorArg& target,
                            const HingeOptions& options = {});

struct CosineEmbeddingOptions {
  double margin = 0;
  std::string reduction = "mean";
};

// With c the cosine of a and b (N, D): 1 - c where target (N) is 1, max(0, c - margin) where it is
// -1. One pair may come without the dim N.
Tensor cosine_embedding_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                             const CosineEmbeddingOptions& options = {});

struct SoftMarginOptions {
  std::string reduction = "mean";
};

// log(1 + exp(-target input)), target 1 or -1.
Tensor soft_margin_loss(const TensorArg& input, const TensorArg& target,
                        const SoftMarginOptions& options = {});

struct MultiMarginOptions {
  int64_t p = 1;  // or 2
  double margin = 1;
  Tensor weight = {};  // of each class (C)
  std::string reduction = "mean";
};

// The mean over classes i other than the target y of max(0, margin - input[y] + input[i])^p, times
// the weight of y. input: (N, C) or (C); target: (N) or (), int64.
Tensor multi_margin_loss(const TensorArg& input, const TensorArg& target,
                         const MultiMarginOptions& options = {});

struct MultilabelMarginOptions {
  std::string reduction = "mean";
};

// The sum over targets j and other classes i of max(0, 1 - input[j] + input[i]) / C. A row of
// `target`, shaped as the input, names classes up to the first -1.
Tensor multilabel_margin_loss(const TensorArg& input, const TensorArg& target,
                              const MultilabelMarginOptions& options = {});

struct MultilabelSoftMarginOptions {
  Tensor weight = {};  // of each class
  std::string reduction = "mean";
};

// The mean over classes of binary_cross_entropy_with_logits. input, target: (N, C).
Tensor multilabel_soft_margin_loss(const TensorArg& input, const TensorArg& target,
                                   const MultilabelSoftMarginOptions& options = {});

struct TripletDistanceOptions {
  // unset: pairwise_distance
  std::function<Tensor(const Tensor& a, const Tensor& b)> distance_function = {};
  double margin = 1;
  bool swap = false;
  std::string reduction = "mean";
};

// triplet_margin_loss with a distance of one's own.
Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive,
                                         const TensorArg& negative,
                                         const TripletDistanceOptions& options = {});

struct PoissonNllOptions {
  bool log_input = true;
  bool full = false;  // with Stirling's approximation of log(target!), where target > 1
  double eps = 1e-8;
  std::string reduction = "mean";
};

// exp(input) - target input with log_input, else input - target log(input + eps).
Tensor poisson_nll_loss(const TensorArg& input, const TensorArg& target,
                        const PoissonNllOptions& options = {});

struct GaussianNllOptions {
  bool full = false;  // with log(2 π) / 2
  double eps = 1e-6;  // the variance is at least that; its gradient does not see it
  std::string reduction = "mean";
};

// (log(var) + (input - target)^2 / var) / 2. var: the input's shape, or with its last dim 1 or left
// out; or a number.
Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, const TensorArg& var,
                         const GaussianNllOptions& options = {});
Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, double var,
                         const GaussianNllOptions& options = {});

}  // namespace flow
