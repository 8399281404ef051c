// Op definitions of pooling, for kernels. x is (leading dims..., H, W).
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/conv/window.h"

namespace flow::ops {

struct MaxPoolAttrs {
  SpatialInts kernel{1, 1, 1};
  SpatialInts stride{1, 1, 1};
  SpatialInts padding{};
  SpatialInts dilation{1, 1, 1};
  bool ceil_mode = false;
  // The logical sizes of y. If set, windows are those of adaptive_avg_pool and replace all of the
  // above.
  SpatialInts adaptive{-1, -1, -1};

  bool is_adaptive() const { return adaptive[0] >= 0; }

  static constexpr auto fields() {
    return std::tuple(key_field("kernel", &MaxPoolAttrs::kernel),
                      key_field("stride", &MaxPoolAttrs::stride),
                      key_field("padding", &MaxPoolAttrs::padding),
                      key_field("dilation", &MaxPoolAttrs::dilation),
                      key_field("ceil_mode", &MaxPoolAttrs::ceil_mode),
                      key_field("adaptive", &MaxPoolAttrs::adaptive));
  }
};

struct AvgPoolAttrs {
  SpatialInts kernel{1, 1, 1};
  SpatialInts stride{1, 1, 1};
  SpatialInts padding{};
  bool ceil_mode = false;
  bool count_include_pad = true;
  int64_t divisor = 0;  // 0: the number of elements
  SpatialInts size{};   // of x, logical; avg_pool_backward only

  static constexpr auto fields() {
    return std::tuple(
        key_field("kernel", &AvgPoolAttrs::kernel), key_field("stride", &AvgPoolAttrs::stride),
        key_field("padding", &AvgPoolAttrs::padding),
        key_field("ceil_mode", &AvgPoolAttrs::ceil_mode),
        key_field("count_include_pad", &AvgPoolAttrs::count_include_pad),
        key_field("divisor", &AvgPoolAttrs::divisor), key_field("size", &AvgPoolAttrs::size));
  }
};

struct AdaptivePoolAttrs {
  SpatialInts size{};  // of the result, logical

  static constexpr auto fields() { return std::tuple(key_field("size", &AdaptivePoolAttrs::size)); }
};

// x -> y and the positions of the maxima in the plane. No index is saved for the gradient, which
// finds the maxima again: that costs one read of x, whereas an index would cost a write and a read.
extern const OpDef kMaxPool;
extern const OpDef kMaxPoolWithIndices;
// x, dy -> dx: dy at the maxima of x.
extern const OpDef kMaxPoolBackward;
// x, t (as x) -> t at the maxima of x, as y.
extern const OpDef kMaxPoolGather;

// x -> y and dy -> dx.
extern const OpDef kAvgPool;
extern const OpDef kAvgPoolBackward;
extern const OpDef kAdaptiveAvgPool;
extern const OpDef kAdaptiveAvgPoolBackward;

// The elements of `in` that output `o` of `out` averages.
struct AdaptiveWindow {
  int64_t begin;
  int64_t end;
};

inline AdaptiveWindow adaptive_window(int64_t in, int64_t out, int64_t o) {
  return {o * in / out, ((o + 1) * in + out - 1) / out};
}

// The window along H (0) or W (1).
WindowDim window_dim(const MaxPoolAttrs& attrs, size_t i, int64_t in, int64_t out);
WindowDim window_dim(const AvgPoolAttrs& attrs, size_t i, int64_t in, int64_t out);

}  // namespace flow::ops
