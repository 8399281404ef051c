// Op definitions of elementwise losses, for their kernels.
#pragma once

#include <string>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `count` divides the sum. For a mean it is the number of logical elements, so that each rank
// computes its share and the shares add up to the mean. It is 1 unless `reduces`.
struct LossAttrs {
  bool reduces = false;
  int64_t count = 1;
  double parameter = 0;  // beta, delta

  static constexpr auto fields() {
    return std::tuple(key_field("reduces", &LossAttrs::reduces),
                      value_field("count", &LossAttrs::count),
                      value_field("parameter", &LossAttrs::parameter));
  }
};

// (x, t) -> f(x, t) of each element, or sum of f / count.
extern const OpDef kMseLoss, kL1Loss, kSmoothL1Loss, kHuberLoss, kBceLoss, kBceWithLogitsLoss;
// (dy, x, t) -> dy df/dx / count, elementwise; dy broadcasts.
extern const OpDef kMseLossBackward, kL1LossBackward, kSmoothL1LossBackward, kHuberLossBackward,
    kBceLossBackward, kBceWithLogitsLossBackward;

enum class Reduction { kNone, kMean, kSum };

// Parses a `reduction` option. Throws InvalidArgument with the name `op` for an unknown word.
Reduction parse_reduction(const std::string& word, const char* op);

// Casts a loss operand to float32 where autocast demands it.
Tensor loss_operand(const TensorArg& x);
// Warns if `target` has another shape than `input`, which most often is a mistake: the loss of (N,
// 1) and (N) is that of N² pairs.
void warn_of_broadcast(const char* op, const TensorArg& input, const TensorArg& target);
// Reduces losses of single elements.
Tensor reduced(const Tensor& losses, Reduction reduction, Site site);

}  // namespace flow::ops
