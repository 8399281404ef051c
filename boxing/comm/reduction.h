// Reductions over the parts of several ranks, in a fixed order.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>

#include "core/dtype.h"
#include "core/sbp.h"

namespace flow::boxing {

// kMean is the sum divided by the number of sources; floating-point only.
enum class ReduceOp : uint8_t { kSum, kMax, kMin, kMean };

// Prints as sum, max, min, mean.
std::ostream& operator<<(std::ostream& out, ReduceOp op);

// The reduction of a partial entry. Requires: entry.is_partial().
ReduceOp reduce_op_of(Sbp entry);

// target[i] = sources[0][i] op sources[1][i] op …, evaluated in this order for every alignment and
// count, so that results do not depend on which rank computes them. 16-bit floats are accumulated
// in float32 and rounded once. Integers are summed in their own width and wrap; a sum of bools is
// true if any is true. max and min propagate NaN. `target` may be one of the sources.
void reduce_in_order(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
                     std::byte* target, int64_t count);

// Writes the value that does not change the result of `op`: 0, the lowest or the highest value.
void fill_neutral(DType dtype, ReduceOp op, std::byte* target, int64_t count);

}  // namespace flow::boxing
