// The scalar formulas of ops/elementwise/where.h, in the form that
// ops/elementwise/elementwise_loops.h takes.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "ops/elementwise/where_op.h"

namespace flow::ops {

struct Where {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](bool condition, C a, C b) { return condition ? a : b; };
  }
};

struct MaskedFill {
  template <class C>
  static auto make(const void* attrs) {
    const C value = static_cast<const ScalarAttrs*>(attrs)->value.template to<C>();
    return [value](C x, bool mask) { return mask ? value : x; };
  }
};

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
struct Clamp {
  template <class C>
  static auto make(const void* attrs) {
    const Bounds<C> bounds = bounds_of<C>(attrs);
    return [bounds](C x) {
      const C raised = x < bounds.min ? bounds.min : x;
      return raised > bounds.max ? bounds.max : raised;
    };
  }
};

struct ClampGrad {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const ClampAttrs*>(attrs);
    const bool has_min = a.min.has_value();
    const bool has_max = a.max.has_value();
    const Bounds<C> bounds = bounds_of<C>(attrs);
    return [=](C dy, C x) {
      const bool is_inside = (!has_min || x > bounds.min) && (!has_max || x < bounds.max);
      return is_inside ? dy : C{0};
    };
  }
};

}  // namespace flow::ops
