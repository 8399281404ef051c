// Autocast for op tables and for functions of several ops that autocast treats as one.
#pragma once

#include "core/dispatch.h"

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

}  // namespace flow::ops
