// Definitions of slice, select and the gradient of slices.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// Names the elements start, start + step, … (`length` of them) of `dim`.
struct SliceAttrs {
  int64_t dim = 0;
  int64_t start = 0;
  int64_t length = 0;
  int64_t step = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &SliceAttrs::dim), value_field("start", &SliceAttrs::start),
                      key_field("length", &SliceAttrs::length),
                      key_field("step", &SliceAttrs::step));
  }
};

struct SelectAttrs {
  int64_t dim = 0;
  int64_t index = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &SelectAttrs::dim),
                      value_field("index", &SelectAttrs::index));
  }
};

// The inverse of a slice: the `length` elements of the input become the elements start, start +
// step, … of a dim of `size` elements, and the others are zero.
struct UnsliceAttrs {
  int64_t dim = 0;
  int64_t start = 0;
  int64_t length = 0;
  int64_t size = 0;
  int64_t step = 1;

  static constexpr auto fields() {
    return std::tuple(
        key_field("dim", &UnsliceAttrs::dim), value_field("start", &UnsliceAttrs::start),
        key_field("length", &UnsliceAttrs::length), key_field("size", &UnsliceAttrs::size),
        key_field("step", &UnsliceAttrs::step));
  }
};

// kSliceScatter takes a tensor and the values that replace the slice named by SliceAttrs.
extern const OpDef kSlice, kSelect, kUnslice, kSliceScatter;

// Returns zeros shaped like x but with `size` elements in `dim`, and x at the positions start,
// start + step, …
Tensor unslice(const TensorArg& x, int64_t dim, int64_t start, int64_t size, int64_t step);

}  // namespace flow::ops
