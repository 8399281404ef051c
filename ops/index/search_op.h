// Definition of searchsorted.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct SearchsortedAttrs {
  bool right = false;

  static constexpr auto fields() {
    return std::tuple(key_field("right", &SearchsortedAttrs::right));
  }
};

// Inputs: sequence, values.
extern const OpDef kSearchsorted;

}  // namespace flow::ops
