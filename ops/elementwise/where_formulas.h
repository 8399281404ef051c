// Formulas of clamp and of its gradient.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/where_op.h"

namespace flow::ops {

template <class C>
struct Bounds {
  C min;
  C max;
};

// A bound that is not given, or that is beyond what C holds, is replaced by one that never binds.
template <class C>
Bounds<C> bounds_of(const void* attrs) {
  using Limits = std::numeric_limits<C>;
  const auto& a = *static_cast<const ClampAttrs*>(attrs);
  const C lowest = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
  const C highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const auto bound = [&](const std::optional<Scalar>& given, C otherwise) {
    if (!given) return otherwise;
    if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>) {
      return static_cast<C>(std::clamp<int64_t>(given->to<int64_t>(), lowest, highest));
    } else {
      return given->to<C>();
    }
  };
  return {bound(a.min, lowest), bound(a.max, highest)};
}

// The upper bound wins if min > max; NaN stays NaN.
template <class C>
struct ClampOf {
  Bounds<C> bounds;

  explicit ClampOf(const void* attrs) : bounds(bounds_of<C>(attrs)) {}

  FLOW_HOST_DEVICE C operator()(C x) const {
    const C raised = x < bounds.min ? bounds.min : x;
    return raised > bounds.max ? bounds.max : raised;
  }
};

template <class C>
struct ClampGradOf {
  bool has_min;
  bool has_max;
  Bounds<C> bounds;

  explicit ClampGradOf(const void* attrs)
      : has_min(static_cast<const ClampAttrs*>(attrs)->min.has_value()),
        has_max(static_cast<const ClampAttrs*>(attrs)->max.has_value()),
        bounds(bounds_of<C>(attrs)) {}

  FLOW_HOST_DEVICE C operator()(C dy, C x) const {
    const bool is_inside = (!has_min || x > bounds.min) && (!has_max || x < bounds.max);
    return is_inside ? dy : C{0};
  }
};

}  // namespace flow::ops
