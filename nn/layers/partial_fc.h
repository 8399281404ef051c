// A classifier over very many classes that trains on a sample of the classes (An et al. 2020,
// "Partial FC: Training 10 Million Identities on a Single Machine").
#pragma once

#include "nn/module.h"
#include "ops/loss/partial_fc.h"

namespace flow::nn {

struct PartialFcLayerOptions {
  int64_t num_sample = 0;  // number of classes in a training step; 0: all classes
  int64_t num_parts = 0;   // see PartialFcOptions
};

struct PartialFcResult {
  Tensor cosine;  // (N, classes): cosines of the angles between features and class centres
  Tensor label;   // (N): the column of `cosine` that belongs to each label
};

// Returns the cosines between the features and the class centres: of all classes in evaluation, and
// in training of a sample that contains every class in `label`. features: (N, embedding_size);
// label: (N), int32 or int64. weight: (num_classes, embedding_size), the class centres, initialised
// as N(0, 0.01²). If weight is laid out as S(0), each rank samples from its own classes and returns
// their columns. A negative size or option is InvalidArgument.
//
//   auto [cosine, column] = fc(features, labels);
//   cross_entropy(mul(margin(cosine, column), 64), column)
class PartialFC : public Module<PartialFC> {
 public:
  PartialFC(int64_t embedding_size, int64_t num_classes, PartialFcLayerOptions options = {},
            Site site = Site::here());
  PartialFcResult forward(const Tensor& features, const Tensor& label);

  Tensor weight;

 private:
  PartialFcLayerOptions options_;
};

}  // namespace flow::nn
