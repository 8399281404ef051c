// The factorisations by LAPACK, which OpenBLAS contains.
#pragma once

#include "ops/linalg/factors.h"

namespace flow::ops {

// Null if OpenBLAS is absent or has no LAPACK. T is float or double.
template <class T>
const Factors<T>* lapack_factors();

}  // namespace flow::ops
