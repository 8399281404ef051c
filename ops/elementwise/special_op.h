// Definitions of the ops of ops/elementwise/special.h that have one input.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// n = 0 is digamma.
struct PolygammaAttrs {
  int64_t n = 0;

  static constexpr auto fields() { return std::tuple(key_field("n", &PolygammaAttrs::n)); }
};

extern const OpDef kLgamma, kPolygamma, kErfinv;

}  // namespace flow::ops
