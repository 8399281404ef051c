// The rows of functions of three operands, and of clamp, in the table of
// ops/elementwise/row_table.h. They are written as those of ops/elementwise/arithmetic_rows.h; dc
// is the gradient of the third input. A row with more than a number of attrs has a function object
// Of<C> in place of apply; it is made of the attrs of a call.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/host_device.h"
#include "ops/elementwise/arithmetic_rows.h"
#include "ops/elementwise/binary_facts.h"
#include "ops/elementwise/row_layouts.h"
#include "ops/elementwise/ternary_op.h"
#include "ops/elementwise/unary_facts.h"
#include "ops/elementwise/where_formulas.h"
#include "ops/promotion.h"

namespace flow::ops {

auto times(const auto& x, double factor) {
  return factor == 1 ? x : mul(x, factor);
}

// clang-format off

// x + value a b
struct Addcmul {
  static constexpr TernaryFacts kFacts{.name = "addcmul", .takes = Takes::kNumbers,
                                       .sbp = sbp_addcmul, .reads = kReadsB | kReadsC,
                                       .loops = kLoopIntegers, .autocast = AutocastRule::kWidest};
  using Attrs = AddcAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T x, T a, T b, T value) {
    return Add::apply(x, Mul::apply(value, Mul::apply(a, b)));
  }
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) { return times(mul(in.dy(), in.c()), in.attrs().value); }
  static auto dc(const auto& in) { return times(mul(in.dy(), in.b()), in.attrs().value); }
};

// x + value a / b
struct Addcdiv {
  static constexpr TernaryFacts kFacts{.name = "addcdiv", .takes = Takes::kFloats,
                                       .sbp = sbp_addcdiv, .reads = kReadsB | kReadsC,
                                       .autocast = AutocastRule::kWidest};
  using Attrs = AddcAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T x, T a, T b, T value) {
    return x + value * (a / b);
  }
  static auto shared(const auto& in) { return times(div(in.dy(), in.c()), in.attrs().value); }
  static auto da(const auto& in) { return in.dy(); }
  static auto db(const auto& in) { return in.shared(); }
  static auto dc(const auto& in) { return neg(mul(in.shared(), div(in.b(), in.c()))); }
};

// start + weight (end - start), from the nearer end
struct Lerp {
  static constexpr TernaryFacts kFacts{.name = "lerp", .takes = Takes::kFloats, .sbp = sbp_lerp,
                                       .reads = kReadsA | kReadsB | kReadsC};
  template <class T> FLOW_HOST_DEVICE static T apply(T start, T end, T weight) {
    const T distance = end - start;
    return std::abs(weight) < T(0.5) ? start + weight * distance : end - distance * (1 - weight);
  }
  static auto da(const auto& in) { return mul(in.dy(), 1 - in.c()); }
  static auto db(const auto& in) { return mul(in.dy(), in.c()); }
  static auto dc(const auto& in) { return mul(in.dy(), sub(in.b(), in.a())); }
};

struct LerpNumber {
  static constexpr TernaryFacts kFacts{.name = "lerp_scalar", .num_inputs = 2,
                                       .takes = Takes::kFloats, .sbp = sbp_lerp_number};
  using Attrs = ScalarAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T start, T end, T weight) {
    return Lerp::apply(start, end, weight);
  }
  static auto da(const auto& in) {
    return times(in.dy(), 1 - in.attrs().value.template to<double>());
  }
  static auto db(const auto& in) { return times(in.dy(), in.attrs().value.template to<double>()); }
};

// ---- choices

struct Where {
  static constexpr TernaryFacts kFacts{.name = "where", .masks = 0b001, .sbp = sbp_where,
                                       .reads = kReadsA, .loops = kNoLoops,
                                       .allows_in_place = false};
  template <class T> FLOW_HOST_DEVICE static T apply(bool condition, T a, T b) {
    return condition ? a : b;
  }
  static auto db(const auto& in) { return masked_fill(in.dy(), logical_not(in.a()), 0); }
  static auto dc(const auto& in) { return masked_fill(in.dy(), in.a(), 0); }
};

struct MaskedFill {
  static constexpr TernaryFacts kFacts{.name = "masked_fill", .num_inputs = 2, .masks = 0b010,
                                       .sbp = sbp_masked_fill, .reads = kReadsB,
                                       .loops = kNoLoops};
  using Attrs = ScalarAttrs;
  template <class T> FLOW_HOST_DEVICE static T apply(T x, bool mask, T value) {
    return mask ? value : x;
  }
  static auto da(const auto& in) { return masked_fill(in.dy(), in.b(), 0); }
};

// dx = dy where min < x < max, else 0
struct Clamp {
  static constexpr TernaryFacts kFacts{.name = "clamp", .num_inputs = 1, .sbp = kRises,
                                       .reads = kReadsA, .loops = kLoopWords};
  using Attrs = ClampAttrs;
  template <class C> using Of = ClampOf<C>;
  static auto da(const auto& in) { return clamp_grad(in.dy(), in.a(), in.attrs()); }
};

// Linear in dy, a step function in x.
struct ClampGrad {
  static constexpr TernaryFacts kFacts{.name = "clamp_grad", .num_inputs = 2,
                                       .sbp = sbp_clamp_grad, .reads = kReadsB,
                                       .loops = kLoopFloats, .allows_in_place = false};
  using Attrs = ClampAttrs;
  template <class C> using Of = ClampGradOf<C>;
  static auto da(const auto& in) { return clamp_grad(in.dy(), in.b(), in.attrs()); }
};

// clang-format on

using TernaryRows = Rows<Addcmul, Addcdiv, Lerp, LerpNumber>;
using ChoiceRows = Rows<Where, MaskedFill, Clamp, ClampGrad>;

}  // namespace flow::ops
