// Op definitions of padding with a tensor's own elements, for kernels and pad.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

enum class BorderMode : int64_t { kReflect, kReplicate, kCircular };

// The numbers of elements added before and after each dim; none is negative.
struct BorderAttrs {
  Shape before;
  Shape after;
  BorderMode mode = BorderMode::kReflect;

  static constexpr auto fields() {
    return std::tuple(key_field("before", &BorderAttrs::before),
                      key_field("after", &BorderAttrs::after),
                      key_field("mode", &BorderAttrs::mode));
  }
};

// The position, among the `size` elements of dim `dim` of x, from which position i of y is copied.
int64_t border_source(const BorderAttrs& attrs, int64_t dim, int64_t size, int64_t i);

// x -> y, a linear map, and dy -> dx, its adjoint: the sum of all copies of an element.
extern const OpDef kBorder;
extern const OpDef kBorderBackward;

}  // namespace flow::ops
