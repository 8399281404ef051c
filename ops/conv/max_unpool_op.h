// Definition of the scatter that max_unpool uses.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct MaxUnpoolAttrs {
  int64_t size = 0;      // of y's last dim
  int64_t num_dims = 0;  // spatial dims of the called function, for messages

  static constexpr auto fields() {
    return std::tuple(key_field("size", &MaxUnpoolAttrs::size),
                      key_field("num_dims", &MaxUnpoolAttrs::num_dims));
  }
};

// (x, indices), both (..., n) -> zeros (..., size) with x[..., i] at indices[..., i].
extern const OpDef kMaxUnpool;

}  // namespace flow::ops
