// Losses that demand a margin between scores, distances or angles. They are composed of other
// functions. `reduction` has the meaning it has in ops/loss/loss.h.
#pragma once

#include <functional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct MarginOptions {
  double margin = 0;
  std::string reduction = "mean";
};

// max(0, margin - target (a - b)). A target of 1 means that a should be the larger one, -1 that it
// should be the smaller one.
Tensor margin_ranking_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                           const MarginOptions& options = {});

struct HingeOptions {
  double margin = 1;
  std::string reduction = "mean";
};

// For distances: input where target is 1, max(0, margin - input) where target is -1.
Tensor hinge_embedding_loss(const TensorArg& input, const TensorArg& target,
                            const HingeOptions& options = {});

struct CosineEmbeddingOptions {
  double margin = 0;
  std::string reduction = "mean";
};

// With c the cosine of a and b (N, D): 1 - c where target (N) is 1, max(0, c - margin) where it is
// -1. A single pair may omit the dim N.
Tensor cosine_embedding_loss(const TensorArg& a, const TensorArg& b, const TensorArg& target,
                             const CosineEmbeddingOptions& options = {});

struct SoftMarginOptions {
  std::string reduction = "mean";
};

// log(1 + exp(-target input)), in the dtype of the input. Each target is 1 or -1.
Tensor soft_margin_loss(const TensorArg& input, const TensorArg& target,
                        const SoftMarginOptions& options = {});

struct MultiMarginOptions {
  int64_t p = 1;  // or 2
  double margin = 1;
  Tensor weight = {};  // per class (C)
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
// `target` has the shape of a row of input and lists classes; the list ends at the first -1.
Tensor multilabel_margin_loss(const TensorArg& input, const TensorArg& target,
                              const MultilabelMarginOptions& options = {});

struct MultilabelSoftMarginOptions {
  Tensor weight = {};  // of each class
  std::string reduction = "mean";
};

// The mean over classes of binary_cross_entropy_with_logits. input, target: (N, C).
Tensor multilabel_soft_margin_loss(const TensorArg& input, const TensorArg& target,
                                   const MultilabelSoftMarginOptions& options = {});

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;  // use d(positive, negative) if it is smaller than d(anchor, negative)
  std::string reduction = "mean";
};

// max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is pairwise_distance (Balntas
// et al. 2016).
Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive,
                           const TensorArg& negative, const TripletOptions& options = {});

struct TripletDistanceOptions {
  // unset: pairwise_distance
  std::function<Tensor(const Tensor& a, const Tensor& b)> distance_function = {};
  double margin = 1;
  bool swap = false;
  std::string reduction = "mean";
};

// triplet_margin_loss with a distance that the caller gives.
Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive,
                                         const TensorArg& negative,
                                         const TripletDistanceOptions& options = {});

struct CombinedMarginOptions {
  double m1 = 1;
  double m2 = 0;
  double m3 = 0;
};

// Applies a margin to the cosines (N, C) of the angles between features and class centres: the
// cosine at each row's label becomes cos(m1 angle + m2) - m3. The result is scaled and passed to
// cross_entropy (Liu et al. 2017: m1; Deng et al. 2019: m2; Wang et al. 2018: m3). label: (N),
// int32 or int64.
Tensor combined_margin_loss(const TensorArg& input, const TensorArg& label,
                            const CombinedMarginOptions& options = {});

}  // namespace flow
