// Definition of the op of ops/elementwise/trigonometry.h that has two inputs. The others are rows
// of ops/elementwise/unary_rows.h.
#pragma once

#include "core/op.h"

namespace flow::ops {

// (y, x), which broadcast together.
extern const OpDef kAtan2;

}  // namespace flow::ops
