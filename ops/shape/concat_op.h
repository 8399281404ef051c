// Definitions of the concat family.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct CatAttrs {
  int64_t dim = 0;

  static constexpr auto fields() { return std::tuple(key_field("dim", &CatAttrs::dim)); }
};

struct FlipAttrs {
  Shape dims;  // ascending

  static constexpr auto fields() { return std::tuple(key_field("dims", &FlipAttrs::dims)); }
};

// The numbers of elements added before and after each dim; none is negative.
struct PadAttrs {
  Shape before;
  Shape after;
  double value = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("before", &PadAttrs::before), key_field("after", &PadAttrs::after),
                      value_field("value", &PadAttrs::value));
  }
};

struct TriangleAttrs {
  int64_t diagonal = 0;

  static constexpr auto fields() {
    return std::tuple(value_field("diagonal", &TriangleAttrs::diagonal));
  }
};

extern const OpDef kCat, kFlip, kPad, kTril, kTriu;

}  // namespace flow::ops
