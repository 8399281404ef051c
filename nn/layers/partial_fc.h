// The classifier of very many classes that trains on a sample of them.
#pragma once

#include "nn/module.h"
#include "ops/loss/partial_fc.h"

namespace flow::nn {

struct PartialFcLayerOptions {
  int64_t num_sample = 0;  // classes of a training step; 0: all
  int64_t num_parts = 0;   // see PartialFcOptions
};

struct PartialFcResult {
  Tensor cosine;  // (N, classes), of the angles between features and class centres
  Tensor label;   // (N): the label's column
};

// features (N, embedding_size), label (N) → cosines of all classes, or in training of a sample that
// holds those of the labels (An et al. 2020). weight: (num_classes, embedding_size), the centres,
// starts as N(0, 0.01²); laid out as S(0), each rank samples its own centres and gives its columns.
//   auto [cosine, column] = fc(features, labels);
//   cross_entropy(mul(margin(cosine, column), 64), column)
class PartialFC : public Module<PartialFC> {
 public:
  PartialFC(int64_t embedding_size, int64_t num_classes, PartialFcLayerOptions options = {});
  PartialFcResult forward(const Tensor& features, const Tensor& label);

  Tensor weight;

 private:
  PartialFcLayerOptions options_;
};

}  // namespace flow::nn
