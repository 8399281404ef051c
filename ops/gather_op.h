// Definitions of gather, scatter and their gradients. Indices are int64 throughout.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct DimAttrs {
  int64_t dim = 0;

  static constexpr auto fields() { return std::tuple(key_field("dim", &DimAttrs::dim)); }
};

// Inputs: y, index. Zeros of `shape` with y's elements added where gather would take them.
struct UngatherAttrs {
  int64_t dim = 0;
  Shape shape;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &UngatherAttrs::dim),
                      key_field("shape", &UngatherAttrs::shape));
  }
};

struct ScatterValueAttrs {
  int64_t dim = 0;
  Scalar value;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &ScatterValueAttrs::dim),
                      value_field("value", &ScatterValueAttrs::value));
  }
};

extern const OpDef kGather, kUngather, kScatter, kScatterAdd, kScatterValue;

// The gradient of gather; see UngatherAttrs.
Tensor ungather(const TensorArg& y, int64_t dim, const TensorArg& index, const Shape& shape);

}  // namespace flow::ops
