// Op definitions of elementwise losses, for their kernels.
#pragma once

#include <string>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `count` is what the sum is divided by: the number of logical elements for a mean, so that a rank
// with some of them computes its share and the shares add up. 1 unless `reduces`.
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

// The meaning of a `reduction` option; throws InvalidArgument naming `op` for another word.
Reduction parse_reduction(const std::string& word, const char* op);

// As autocast has losses: in float32.
Tensor loss_operand(const TensorArg& x);
// Losses of single elements, reduced.
Tensor reduced(const Tensor& losses, Reduction reduction, Site site);

}  // namespace flow::ops
