// A softmax over many classes whose rare classes cost little (Grave et al. 2017).
#pragma once

#include <cstdint>
#include <vector>

#include "nn/layers/container.h"
#include "nn/layers/linear.h"
#include "nn/module.h"

namespace flow::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4;  // cluster i projects to in_features / div_value^(i + 1) features
  bool head_bias = false;
};

struct AdaptiveLogSoftmaxResult {
  Tensor output;  // the log probability of each target
  Tensor loss;    // minus their mean
};

// The head has the classes below cutoffs[0] and one entry for each cluster; cluster i has the
// classes from cutoffs[i] to the next cutoff, or to n_classes. So classes must be sorted by
// frequency, and a cluster is computed for the rows only whose target is in it. In a compiled step,
// and for global tensors, all clusters are computed for all rows, because the number of rows must
// not depend on the values. Sub-modules: head, tail. Throws InvalidArgument unless cutoffs are
// positive, ascending and below n_classes, and each cluster projects to a feature at least.
class AdaptiveLogSoftmaxWithLoss : public Module<AdaptiveLogSoftmaxWithLoss> {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             AdaptiveLogSoftmaxOptions options = {}, Site site = Site::here());

  // input: (N, in_features) and target (N) int64, or (in_features) and (). A target that is no
  // class is InvalidArgument.
  AdaptiveLogSoftmaxResult forward(const Tensor& input, const Tensor& target);
  // The log probabilities of all classes: (N, in_features) → (N, n_classes).
  Tensor log_prob(const Tensor& input);
  // The most probable class: (N, in_features) → (N).
  Tensor predict(const Tensor& input);

  Linear head;
  ModuleList<Sequential> tail;

 private:
  // `cutoffs` are checked and end in n_classes.
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, std::vector<int64_t> cutoffs,
                             AdaptiveLogSoftmaxOptions options, Site site);
  // The log probabilities of the classes of cluster i, given that the class is in it.
  Tensor cluster(size_t i, const Tensor& rows);

  std::vector<int64_t> cutoffs_;  // n_classes is the last
};

}  // namespace flow::nn
