// Losses as modules; the formulas stand at the functions in ops/loss/loss.h and
// ops/loss/cross_entropy.h. Targets that lie on another placement than the input are brought there.
#pragma once

#include "nn/module.h"
#include "ops/loss/cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/loss/margin_loss.h"

namespace flow::nn {

// |input - target|.
class L1Loss : public Module<L1Loss> {
 public:
  explicit L1Loss(LossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  LossOptions options_;
};

class MSELoss : public Module<MSELoss> {
 public:
  explicit MSELoss(LossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  LossOptions options_;
};

class SmoothL1Loss : public Module<SmoothL1Loss> {
 public:
  explicit SmoothL1Loss(SmoothL1Options options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  SmoothL1Options options_;
};

class HuberLoss : public Module<HuberLoss> {
 public:
  explicit HuberLoss(HuberOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  HuberOptions options_;
};

// input: probabilities.
class BCELoss : public Module<BCELoss> {
 public:
  explicit BCELoss(BceOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  BceOptions options_;
};

// input: logits.
class BCEWithLogitsLoss : public Module<BCEWithLogitsLoss> {
 public:
  explicit BCEWithLogitsLoss(BceWithLogitsOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  BceWithLogitsOptions options_;
};

// input: log-probabilities.
class KLDivLoss : public Module<KLDivLoss> {
 public:
  explicit KLDivLoss(KlDivOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  KlDivOptions options_;
};

// input: log-probabilities (N, C, …), target: (N, …) of class indices.
class NLLLoss : public Module<NLLLoss> {
 public:
  explicit NLLLoss(NllLossOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  NllLossOptions options_;
};

// input: logits (N, C, …), target: (N, …) of class indices or (N, C, …) of probabilities.
class CrossEntropyLoss : public Module<CrossEntropyLoss> {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  CrossEntropyOptions options_;
};

class MarginRankingLoss : public Module<MarginRankingLoss> {
 public:
  explicit MarginRankingLoss(MarginOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);

 private:
  MarginOptions options_;
};

class TripletMarginLoss : public Module<TripletMarginLoss> {
 public:
  explicit TripletMarginLoss(TripletOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  TripletOptions options_;
};

// input: cosines (N, C), label: (N) of class indices → cosines with a margin at the label.
class CombinedMarginLoss : public Module<CombinedMarginLoss> {
 public:
  explicit CombinedMarginLoss(const CombinedMarginOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& input, const Tensor& label);

 private:
  CombinedMarginOptions options_;
};

}  // namespace flow::nn
