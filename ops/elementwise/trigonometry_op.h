// Definitions of the ops of ops/elementwise/trigonometry.h.
#pragma once

#include "core/op.h"

namespace flow::ops {

extern const OpDef kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh, kAtanh;
// (y, x), which broadcast together.
extern const OpDef kAtan2;

}  // namespace flow::ops
