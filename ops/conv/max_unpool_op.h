// Definition of the scatter behind max_unpool.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct MaxUnpoolAttrs {
  int64_t size = 0;      // of y's last dim
  int64_t num_dims = 0;  // of the function called, for messages

  static constexpr auto fields() {
    return std::tuple(key_field("size", &MaxUnpoolAttrs::size),
                      key_field("num_dims", &MaxUnpoolAttrs::num_dims));
  }
};

// x, indices: (..., n) -> zeros (..., size) with x[..., i] at indices[..., i].
extern const OpDef kMaxUnpool;

}  // namespace flow::ops
