// Conversion between any two dtypes where speed does not matter: one piece of code for all pairs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "ops/kernel/strided_loop.h"

namespace flow::ops {

// The source or target of a conversion: its elements and the stride in elements.
struct ConvertedRow {
  DType dtype;
  std::byte* data;
  int64_t stride;
};

struct SourceRow {
  DType dtype;
  const std::byte* data;
  int64_t stride;
};

// Converts n elements as convert() of ops/elementwise/cast_formula.h does.
void convert_row(const ConvertedRow& y, const SourceRow& x, int64_t n);

// Converts all elements of a loop with one input; `y` and `x` point at the first elements.
void convert_rows(const LoopNest& state, DType to, std::byte* y, DType from, const std::byte* x);

}  // namespace flow::ops
