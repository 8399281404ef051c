// The facts of a row of ops/elementwise/unary_rows.h apart from its formula and its gradient.
#pragma once

#include <cstdint>

#include "core/op.h"
#include "ops/elementwise/rows.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

// Layout rules, by what becomes of partial values. A function that is NaN on both sides of its
// domain, or that neither rises nor falls, takes no partial values.
inline constexpr SbpFn kRises = unary_sbp<kIncreasing>;
inline constexpr SbpFn kFalls = unary_sbp<kDecreasing>;
inline constexpr SbpFn kRisesFromBound = unary_sbp<kMinToMin>;  // NaN below the bound
inline constexpr SbpFn kFallsFromBound = unary_sbp<kMinToMax>;

struct UnaryFacts {
  const char* name;
  Tensor (*call)(const TensorArg& x);
  const Tensor& (*in_place)(const TensorArg& x) = nullptr;
  Takes takes = Takes::kPromoted;
  SbpFn sbp = elementwise_sbp;
  RowSample sample = kAnywhere;
  AutocastRule autocast = AutocastRule::kNone;
  uint32_t loops = kLoopLibrary;
  bool gives_bools = false;  // no gradient and no in-place form
  bool is_step = false;      // its derivative is 0 wherever it exists

  static constexpr uint32_t masks = 0;
  static constexpr bool allows_in_place = true;
  static constexpr bool refuses_zero = false;

  static constexpr int inputs() { return 1; }
};

}  // namespace flow::ops
