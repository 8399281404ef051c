// Dispatch on the size of elements that are moved but not computed with.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace flow::ops {

// Calls fn with an unsigned type of the size of `dtype`'s elements.
template <class Fn>
void dispatch_size(DType dtype, const Fn& fn) {
  switch (dtype_size(dtype)) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    default:
      return fn.template operator()<uint64_t>();
  }
}

}  // namespace flow::ops
