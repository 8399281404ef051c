// Definitions of the ops of ops/elementwise/compare.h.
#pragma once

#include "core/op.h"
#include "ops/promotion.h"

namespace flow::ops {

extern const OpDef kEq, kNe, kLt, kLe, kGt, kGe, kLogicalAnd, kLogicalOr, kLogicalXor;
extern const OpDef kEqScalar, kNeScalar, kLtScalar, kLeScalar, kGtScalar, kGeScalar;

}  // namespace flow::ops
