// Definitions of the ops of ops/elementwise/special.h.
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
// (a, b), which broadcast together.
extern const OpDef kCopysign;

}  // namespace flow::ops
