// Definitions of the running sums and products.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `reverse` starts at the last element.
struct CumsumAttrs {
  int64_t dim = 0;
  bool reverse = false;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &CumsumAttrs::dim),
                      key_field("reverse", &CumsumAttrs::reverse));
  }
};

struct CumprodAttrs {
  int64_t dim = 0;

  static constexpr auto fields() { return std::tuple(key_field("dim", &CumprodAttrs::dim)); }
};

// kCumprodBackward: inputs dy, x. kCummax, kCummin give indices too and do not go in reverse.
extern const OpDef kCumsum, kCumprod, kCumprodBackward, kCummax, kCummin, kLogcumsumexp;

}  // namespace flow::ops
