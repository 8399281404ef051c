// Reductions over the parts of several ranks, in a fixed order.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>

#include "core/dtype.h"
#include "core/sbp.h"

namespace flow::boxing {

// kMean: the sum divided by the number of sources; floating-point only.
enum class ReduceOp : uint8_t { kSum, kMax, kMin, kMean };

// Prints as sum, max, min, mean.
std::ostream& operator<<(std::ostream& out, ReduceOp op);

// Of a partial entry. Requires: entry.is_partial().
ReduceOp reduce_op_of(Sbp entry);

// target[i] = sources[0][i] op sources[1][i] op …, evaluated in this order whatever the sources'
// alignment or count, so that results do not depend on who computes them. 16-bit floats are
// accumulated in float32 and rounded once, integers in their own width (wrapping), bool as "any"
// for sums; max and min propagate NaN. `target` may be one of the sources.
void reduce_in_order(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
                     std::byte* target, int64_t count);

// Writes the value that changes nothing: 0, the lowest or the highest.
void fill_neutral(DType dtype, ReduceOp op, std::byte* target, int64_t count);

}  // namespace flow::boxing
