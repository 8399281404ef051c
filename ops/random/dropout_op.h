// Op definitions of dropout, for its kernels.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct DropoutAttrs {
  double p = 0.5;

  static constexpr auto fields() { return std::tuple(value_field("p", &DropoutAttrs::p)); }
};

// The mask (bool, true: kept) is an output, because reading one byte per element is about ten times
// cheaper than drawing the mask again.
extern const OpDef kDropout;          // (x) -> y, mask
extern const OpDef kDropoutBackward;  // (dy, mask) -> dx

}  // namespace flow::ops
