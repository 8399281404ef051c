// The losses of ops/loss/{margin_loss,likelihood_loss,ctc_loss}.h as modules; the formulas stand
// there. Targets that lie on another placement than the input are brought there.
#pragma once

#include <vector>

#include "nn/module.h"
#include "ops/loss/ctc_loss.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/margin_loss.h"

namespace flow::nn {

// input: distances, target: 1 or -1.
class HingeEmbeddingLoss : public Module<HingeEmbeddingLoss> {
 public:
  explicit HingeEmbeddingLoss(HingeOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  HingeOptions options_;
};

// target: 1 or -1.
class SoftMarginLoss : public Module<SoftMarginLoss> {
 public:
  explicit SoftMarginLoss(SoftMarginOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  SoftMarginOptions options_;
};

// input: (N, C), target: (N) of class indices.
class MultiMarginLoss : public Module<MultiMarginLoss> {
 public:
  explicit MultiMarginLoss(MultiMarginOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultiMarginOptions options_;
};

// input: (N, C), target: (N, C) of class indices up to the first -1.
class MultiLabelMarginLoss : public Module<MultiLabelMarginLoss> {
 public:
  explicit MultiLabelMarginLoss(MultilabelMarginOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultilabelMarginOptions options_;
};

// input: logits (N, C), target: (N, C).
class MultiLabelSoftMarginLoss : public Module<MultiLabelSoftMarginLoss> {
 public:
  explicit MultiLabelSoftMarginLoss(MultilabelSoftMarginOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultilabelSoftMarginOptions options_;
};

// input: rates, or their logarithms.
class PoissonNLLLoss : public Module<PoissonNLLLoss> {
 public:
  explicit PoissonNLLLoss(PoissonNllOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  PoissonNllOptions options_;
};

// input1, input2: (N, D), target: (N) of 1 or -1.
class CosineEmbeddingLoss : public Module<CosineEmbeddingLoss> {
 public:
  explicit CosineEmbeddingLoss(CosineEmbeddingOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);

 private:
  CosineEmbeddingOptions options_;
};

// input: means, var: variances.
class GaussianNLLLoss : public Module<GaussianNLLLoss> {
 public:
  explicit GaussianNLLLoss(GaussianNllOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var);

 private:
  GaussianNllOptions options_;
};

class TripletMarginWithDistanceLoss : public Module<TripletMarginWithDistanceLoss> {
 public:
  explicit TripletMarginWithDistanceLoss(TripletDistanceOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  TripletDistanceOptions options_;
};

// log_probs: (T, N, C), targets: (N, S) or one vector, lengths: (N).
class CTCLoss : public Module<CTCLoss> {
 public:
  explicit CTCLoss(CtcOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  Tensor forward(const Tensor& log_probs, const Tensor& targets,
                 const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths);

 private:
  CtcOptions options_;
};

}  // namespace flow::nn
