// A classifier over a very large number of classes that is trained on a sample of them (An et al.
// 2020, "Partial FC: Training 10 Million Identities on a Single Machine").
#pragma once

#include "core/tensor.h"

namespace flow {

struct PartialFcOptions {
  // The classes are divided into this many balanced parts, and each part contributes its balanced
  // share of the sample. 0 means the number of parts that the ranks hold of the weight, which is 1
  // for a local weight. The sample depends on this number and not on the layout.
  int64_t num_parts = 0;
};

struct PartialFcSample {
  Tensor mapped_label;    // (N), dtype of label: index in sampled_label of each label
  Tensor sampled_label;   // (num_sample), dtype of label: the classes taken, ascending
  Tensor sampled_weight;  // (num_sample, D): their rows of the weight
};

// Samples classes. weight: (C, D) floating; label: (N) int32 or int64 in [0, C). All classes that
// occur in label are taken. The rest of each part's share are the other classes with the smallest
// (draw, class), where draws are 32-bit and element c of one random stream belongs to class c
// (core/generator.h). Throws InvalidArgument if a part has more labels than its share. The gradient
// of sampled_weight goes to the rows that were taken; the other rows get 0. If the weight is split
// over ranks along dim 0, each rank samples its own classes and only the positions of the labels
// are communicated.
//   auto [label, classes, rows] = distributed_partial_fc_sample(weight, labels, 1000);
//   cross_entropy(linear(features, rows), label)
PartialFcSample distributed_partial_fc_sample(const TensorArg& weight, const TensorArg& label,
                                              int64_t num_sample,
                                              const PartialFcOptions& options = {});

}  // namespace flow
