// Definitions of the ops of ops/elementwise/bitwise.h.
#pragma once

#include "core/op.h"

namespace flow::ops {

extern const OpDef kBitwiseAnd, kBitwiseOr, kBitwiseXor, kBitwiseNot, kLeftShift, kRightShift;

}  // namespace flow::ops
