// Definition of the op of ops/elementwise/cast.h.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct CastAttrs {
  DType dtype = DType::kFloat32;

  static constexpr auto fields() { return std::tuple(key_field("dtype", &CastAttrs::dtype)); }
};

extern const OpDef kCast;

}  // namespace flow::ops
