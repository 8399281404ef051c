// Definition of histc's count of elements.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct HistcAttrs {
  int64_t bins = 0;

  static constexpr auto fields() { return std::tuple(key_field("bins", &HistcAttrs::bins)); }
};

// Inputs: x, and low () < high () of its dtype. Output: (bins), of x's dtype; the numbers of
// elements that are in bins of equal width, which cover [low, high]. An element v is in bin
// trunc((v - low) / (high - low) * bins), computed in float (float64 in double), and high is in the
// last one. Throws InvalidArgument if the range is not finite.
extern const OpDef kHistc;

}  // namespace flow::ops
