// Losses that compare embeddings or rank samples, as modules. Each one calls the function of the
// same name in ops, with the options given to the constructor; the formulas are there.
#pragma once

#include "nn/module.h"
#include "ops/loss/loss.h"
#include "ops/loss/margin_loss.h"

namespace flow::nn {

// max(0, margin - target (input1 - input2)). target: 1 where input1 should be larger, else -1.
class MarginRankingLoss : public Module<MarginRankingLoss> {
 public:
  explicit MarginRankingLoss(MarginOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);

 private:
  MarginOptions options_;
};

// input: distances; target: 1 for similar pairs, -1 for dissimilar ones. A target on another
// placement than the input is moved to the input's placement first.
class HingeEmbeddingLoss : public Module<HingeEmbeddingLoss> {
 public:
  explicit HingeEmbeddingLoss(HingeOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  HingeOptions options_;
};

// input1, input2: (N, D); target: (N), 1 for similar pairs, -1 for dissimilar ones. A target on
// another placement than input1 is moved to the placement of input1 first.
class CosineEmbeddingLoss : public Module<CosineEmbeddingLoss> {
 public:
  explicit CosineEmbeddingLoss(CosineEmbeddingOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);

 private:
  CosineEmbeddingOptions options_;
};

// max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm as distance d (Balntas
// et al. 2016). anchor, positive, negative: (N, D).
class TripletMarginLoss : public Module<TripletMarginLoss> {
 public:
  explicit TripletMarginLoss(TripletOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  TripletOptions options_;
};

// TripletMarginLoss with the distance function in options.distance_function.
class TripletMarginWithDistanceLoss : public Module<TripletMarginWithDistanceLoss> {
 public:
  explicit TripletMarginWithDistanceLoss(TripletDistanceOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  TripletDistanceOptions options_;
};

// Adds margins to the cosine of each sample's class (ArcFace, Deng et al. 2019, and its relatives;
// see combined_margin_loss). input: cosines (N, C); label: class indices (N). The result, (N, C),
// is the input of a cross entropy.
class CombinedMarginLoss : public Module<CombinedMarginLoss> {
 public:
  explicit CombinedMarginLoss(const CombinedMarginOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& input, const Tensor& label);

 private:
  CombinedMarginOptions options_;
};

}  // namespace flow::nn
