// Losses of classification. The class dim of the input is dim 1, or dim 0 of a single sample: input
// (N, C, d1, ...) or (C), target (N, d1, ...) or () of int64 or int32 classes.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow {

struct NllLossOptions {
  Tensor weight = {};           // (C): factor of each class
  int64_t ignore_index = -100;  // targets with this value are ignored
  std::string reduction = "mean";
};

// The negative log-likelihood -weight[t] input[t] of log-probabilities. "mean" divides the sum by
// the sum of the weights of the targets that are not ignored (without weight, by their number); it
// is NaN if all targets are ignored.
Tensor nll_loss(const TensorArg& input, const TensorArg& target,
                const NllLossOptions& options = {});

struct CrossEntropyOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
};

// nll_loss of log_softmax(input), computed in one pass. With label_smoothing e, the target
// distribution is (1 - e) at the target plus e / C for every class. A floating target with the
// shape of the input is itself a distribution; "mean" then divides by the number of samples, and
// ignore_index is not used.
//
//   Tensor loss = cross_entropy(model(x), labels);
Tensor cross_entropy(const TensorArg& input, const TensorArg& target,
                     const CrossEntropyOptions& options = {});

}  // namespace flow
