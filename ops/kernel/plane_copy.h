// Copies between two strided planes of elements, with the widest vectors of this process: what all
// copies of tensors and the staging of strided operands are made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/kernel/cpu_features.h"

namespace flow::ops {

// target[row, column] = source[row, column]. Strides are in elements; those of the source may be
// zero or negative. The planes must not overlap.
struct Plane {
  std::byte* target;
  const std::byte* source;
  int64_t rows;
  int64_t columns;
  int64_t target_row;  // the distance of neighbouring rows, and so on
  int64_t target_column;
  int64_t source_row;
  int64_t source_column;
};

using PlaneCopy = void (*)(const Plane& plane);

// The function for elements of 1, 2, 4 or 8 bytes, for the instruction set of this process or for
// another one that is compiled in.
PlaneCopy plane_copy(size_t element_bytes);
PlaneCopy plane_copy(size_t element_bytes, CpuIsa isa);

FLOW_DECLARE_PER_ISA(PlaneCopy plane_copy_of(size_t element_bytes))

}  // namespace flow::ops
