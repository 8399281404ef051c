// How far the results of two kernels may differ, per dtype.
#pragma once

#include <string>

#include "core/dtype.h"
#include "tests/support/values.h"

namespace flow::contract {

// The condition is |a - b| <= relative * max(|a|, |b|) + to_largest * (largest finite |element| of
// the expected result) + absolute. Sums in a different order have errors proportional to the size
// of their addends.
struct Tolerance {
  double relative = 0;
  double to_largest = 0;
  double absolute = 0;
};

// The tolerance between two kernels for one dtype: the table of the contract.
Tolerance kernel_tolerance(DType dtype);
// The tolerance between a sharded and an unsharded computation on inputs of a dtype. Addends that
// cancel cost some digits (simulated_ranks.cpp chooses their size).
Tolerance sharding_tolerance(DType dtype);
inline constexpr Tolerance kExact{};

// The largest relative error of rounding to a floating dtype: half the distance from 1 to the next
// value.
double unit_roundoff(DType dtype);

// Empty if the values are close; else where and by how much they differ. NaN equals NaN.
std::string difference(const Values& actual, const Values& expected, Tolerance tolerance);

}  // namespace flow::contract
