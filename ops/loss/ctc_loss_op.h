// Definitions of the CTC loss of each sample and of its gradient.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct CtcAttrs {
  int64_t blank = 0;
  bool zero_infinity = false;

  static constexpr auto fields() {
    return std::tuple(key_field("blank", &CtcAttrs::blank),
                      key_field("zero_infinity", &CtcAttrs::zero_infinity));
  }
};

// Inputs: log_probs (T, N, C), targets (N, S), input_lengths (N), target_lengths (N); all but the
// first are int64. The backward op takes dy (N) as an additional first input.
extern const OpDef kCtcLoss, kCtcLossBackward;

}  // namespace flow::ops
