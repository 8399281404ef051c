// Losses for targets that are classes or probabilities of classes, as modules. Each one calls the
// function of the same name in ops, with the options given to the constructor; the formulas are
// there. A target on another placement than the input is moved to the input's placement first.
// Weights are buffers of the module, as in PyTorch: to() and to_global() move them with it.
#pragma once

#include <vector>

#include "nn/module.h"
#include "ops/loss/cross_entropy.h"
#include "ops/loss/ctc_loss.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/loss.h"
#include "ops/loss/margin_loss.h"

namespace flow::nn {

// Binary cross entropy. input: probabilities in [0, 1]; target: probabilities.
class BCELoss : public Module<BCELoss> {
 public:
  explicit BCELoss(BceOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  BceOptions options_;
};

// Binary cross entropy of sigmoid(input). input: logits; target: probabilities.
class BCEWithLogitsLoss : public Module<BCEWithLogitsLoss> {
 public:
  explicit BCEWithLogitsLoss(BceWithLogitsOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  BceWithLogitsOptions options_;
};

// Negative log-likelihood. input: log-probabilities (N, C, …); target: class indices (N, …).
class NLLLoss : public Module<NLLLoss> {
 public:
  explicit NLLLoss(NllLossOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  NllLossOptions options_;
};

// Cross entropy. input: logits (N, C, …); target: class indices (N, …), or probabilities (N, C, …).
class CrossEntropyLoss : public Module<CrossEntropyLoss> {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  CrossEntropyOptions options_;
};

// log(1 + exp(-target input)). input: any shape; target: 1 or -1 for each element.
class SoftMarginLoss : public Module<SoftMarginLoss> {
 public:
  explicit SoftMarginLoss(SoftMarginOptions options = {}) : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  SoftMarginOptions options_;
};

// Multi-class margin loss. input: scores (N, C); target: class indices (N).
class MultiMarginLoss : public Module<MultiMarginLoss> {
 public:
  explicit MultiMarginLoss(MultiMarginOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultiMarginOptions options_;
};

// Margin loss of samples with several classes. input: scores (N, C); target: (N, C), where a row
// lists class indices up to the first -1.
class MultiLabelMarginLoss : public Module<MultiLabelMarginLoss> {
 public:
  explicit MultiLabelMarginLoss(MultilabelMarginOptions options = {})
      : options_(std::move(options)) {}

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultilabelMarginOptions options_;
};

// Binary cross entropy of each class, averaged over the classes. input: logits (N, C); target: 0 or
// 1 for each class (N, C).
class MultiLabelSoftMarginLoss : public Module<MultiLabelSoftMarginLoss> {
 public:
  explicit MultiLabelSoftMarginLoss(MultilabelSoftMarginOptions options = {});

  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  MultilabelSoftMarginOptions options_;
};

// Connectionist temporal classification (Graves et al. 2006). log_probs: (T, N, C); targets: (N,
// S), or all targets concatenated into one vector; input_lengths and target_lengths: (N).
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
