// Definitions of the ops of ops/elementwise/activation.h that have attrs or two inputs, and of the
// fused gradients: "…_grad"(dy, x) = dy f'(x). The others are rows of ops/elementwise/unary_rows.h.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// scale x where x > 0, else scale alpha (exp(rate x) - 1).
struct ScaledEluAttrs {
  double alpha = 1;
  double scale = 1;
  double rate = 1;

  static constexpr auto fields() {
    return std::tuple(value_field("alpha", &ScaledEluAttrs::alpha),
                      value_field("scale", &ScaledEluAttrs::scale),
                      value_field("rate", &ScaledEluAttrs::rate));
  }
};

struct HardtanhAttrs {
  double min_val = -1;
  double max_val = 1;

  static constexpr auto fields() {
    return std::tuple(value_field("min_val", &HardtanhAttrs::min_val),
                      value_field("max_val", &HardtanhAttrs::max_val));
  }
};

extern const OpDef kCelu, kSelu, kHardtanh;
// (x, weight), which broadcast together.
extern const OpDef kPrelu;

// (dy, x)
extern const OpDef kScaledEluGrad, kMishGrad, kHardswishGrad, kHardsigmoidGrad, kHardtanhGrad,
    kSoftsignGrad, kLogsigmoidGrad;

}  // namespace flow::ops
