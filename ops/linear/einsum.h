// Sums of products over named dims.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor.h"

namespace flow {

// The sum of products that `equation` writes in Einstein's notation, as in NumPy: one letter for
// each dim, operands apart by commas, then "->" and the dims of the result. Letters that the result
// lacks are summed over; dims of one letter agree in size, or have size 1 and broadcast. A letter
// that comes twice in one operand takes the diagonal; "..." stands for further dims, aligned from
// the right. Without "->" the result has "..." and then, in alphabetical order, the letters that
// come once. Operands are multiplied from left to right, by matmul where something is summed over.
//   einsum("bqd,bkd->bqk", {q, k})   einsum("ii", {x}): the trace
Tensor einsum(std::string_view equation, const TensorListArg& operands);

// The sum of products over the last `dims` dims of a and the first `dims` of b, or over dims
// dims_a[i] of a and dims_b[i] of b; the other dims of a, then those of b remain.
//   tensordot(a (2, 3, 4), b (3, 4, 5)): (2, 5)
Tensor tensordot(const TensorArg& a, const TensorArg& b, int64_t dims = 2);
Tensor tensordot(const TensorArg& a, const TensorArg& b, const Ints& dims_a, const Ints& dims_b);

}  // namespace flow
