// Definitions of the running sums and products.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `reverse` makes the sum start at the last element.
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

// kCumprodBackward takes dy and x. kCummax and kCummin also return indices, and always start at the
// first element.
extern const OpDef kCumsum, kCumprod, kCumprodBackward, kCummax, kCummin, kLogcumsumexp;

}  // namespace flow::ops
