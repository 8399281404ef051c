// Definitions of the ops of ops/elementwise/ternary.h, for kernels.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/promotion.h"

namespace flow::ops {

struct AddcAttrs {
  double value = 1;

  static constexpr auto fields() { return std::tuple(value_field("value", &AddcAttrs::value)); }
};

// (x, a, b; value)
extern const OpDef kAddcmul, kAddcdiv;
// (start, end, weight), (start, end; value: the weight)
extern const OpDef kLerp, kLerpScalar;

}  // namespace flow::ops
