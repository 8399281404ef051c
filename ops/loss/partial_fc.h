// A classifier over very many classes, trained on a sample of them (An et al. 2020, "Partial FC:
// Training 10 Million Identities on a Single Machine").
#pragma once

#include "core/tensor.h"

namespace flow {

struct PartialFcOptions {
  // The classes are cut into this many balanced parts and each gives its balanced share of the
  // sample. 0: the number of parts that the ranks hold of the weight, 1 for a local one. The sample
  // depends on it, and not on the layout.
  int64_t num_parts = 0;
};

struct PartialFcSample {
  Tensor mapped_label;    // (N), as label: where each label lies in sampled_label
  Tensor sampled_label;   // (num_sample), as label: the classes taken, ascending
  Tensor sampled_weight;  // (num_sample, D): their rows of the weight
};

// weight (C, D) floating, label (N) int32 or int64 in [0, C). All classes that occur in label are
// taken; the rest of each part's share are those others with the smallest (draw, class), where
// draws are 32-bit and element c of one stream belongs to class c (core/generator.h). Throws
// InvalidArgument where a part has more labels than its share. The gradient of sampled_weight goes
// to the rows taken, 0 to the others. Split over ranks along dim 0 of the weight, each rank samples
// its own classes and nothing moves but the labels' places.
//   auto [label, classes, rows] = distributed_partial_fc_sample(weight, labels, 1000);
//   cross_entropy(linear(features, rows), label)
PartialFcSample distributed_partial_fc_sample(const TensorArg& weight, const TensorArg& label,
                                              int64_t num_sample,
                                              const PartialFcOptions& options = {});

}  // namespace flow
