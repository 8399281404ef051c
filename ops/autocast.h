// Autocast for op tables and for functions of several ops that autocast treats as one.
#pragma once

#include <optional>

#include "core/calls/autocast_scope.h"
#include "core/dispatch.h"
#include "ops/elementwise/cast.h"

namespace flow::ops {

// Returns the row with an autocast rule.
constexpr OpDef with_autocast(AutocastRule rule, OpDef op) {
  op.autocast = rule;
  return op;
}

constexpr OpDef in_float32(const OpDef& op) {
  return with_autocast(AutocastRule::kFloat32, op);
}

// Returns `x` as an op with `rule` receives it. x is unchanged if it is undefined or autocast is
// off.
inline Tensor autocast(const TensorArg& x, AutocastRule rule) {
  const Autocaster* active = thread_state().autocast;
  return active == nullptr || !x.defined() ? x.tensor() : active->cast(x, rule);
}

// Returns fn(operands...), computed as autocast computes one op with AutocastRule::kWidest: of
// operands in the widest of their dtypes, and with autocast off. Operands may be undefined.
template <class Fn, class... Operands>
Tensor in_widest_dtype(const Fn& fn, const Operands&... operands) {
  if (thread_state().autocast == nullptr) return fn(operands...);
  const AutocastScope as_given(nullptr);
  const auto is_cast = [](const TensorArg& x) { return x.defined() && is_floating(x->dtype()); };
  std::optional<DType> widest;
  const auto consider = [&](const TensorArg& x) {
    if (is_cast(x)) widest = widest ? promote(*widest, x->dtype()) : x->dtype();
  };
  (consider(operands), ...);
  if (widest == DType::kFloat64) return fn(operands...);
  const auto widened = [&](const TensorArg& x) {
    return is_cast(x) ? cast(x, *widest) : x.tensor();
  };
  return fn(TensorArg(widened(operands), operands.site())...);
}

}  // namespace flow::ops
