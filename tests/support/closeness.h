// How far results of two kernels may differ, per dtype.
#pragma once

#include <string>

#include "core/dtype.h"
#include "tests/support/values.h"

namespace flow::contract {

// |a - b| <= relative * max(|a|, |b|) + to_largest * the largest finite |element| of the expected
// result + absolute: sums in another order err in proportion to what was added.
struct Tolerance {
  double relative = 0;
  double to_largest = 0;
  double absolute = 0;
};

// Between two kernels for one dtype: the table of the contract.
Tolerance kernel_tolerance(DType dtype);
// Between a sharded and an unsharded computation on inputs of a dtype; addends that cancel cost
// some digits (simulated_ranks.cpp chooses their size).
Tolerance sharding_tolerance(DType dtype);
inline constexpr Tolerance kExact{};

// Empty when close; else where and by how much they differ. NaN equals NaN.
std::string difference(const Values& actual, const Values& expected, Tolerance tolerance);

}  // namespace flow::contract
