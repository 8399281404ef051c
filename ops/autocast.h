// Autocast in op tables, and in functions of several ops that it treats as one.
#pragma once

#include "core/dispatch.h"

namespace flow::ops {

// The row with a rule.
constexpr OpDef with_autocast(AutocastRule rule, OpDef op) {
  op.autocast = rule;
  return op;
}

constexpr OpDef in_float32(const OpDef& op) {
  return with_autocast(AutocastRule::kFloat32, op);
}

// `x` as an op with `rule` would take it; undefined and unchanged where autocast is off.
inline Tensor autocast(const TensorArg& x, AutocastRule rule) {
  const Autocaster* active = thread_state().autocast;
  return active == nullptr || !x->defined() ? x.tensor() : active->cast(x, rule);
}

}  // namespace flow::ops
