// The factorisations as plain loops, in double.
#pragma once

#include "ops/linalg/factors.h"

namespace flow::ops {

const Factors<double>& plain_factors();

}  // namespace flow::ops
