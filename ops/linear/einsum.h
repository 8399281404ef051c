// Sums of products over named dims.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor.h"

namespace flow {

// Evaluates the sum of products that `equation` describes in Einstein notation, as in NumPy: one
// letter for each dim, a comma between operands, then "->" and the dims of the result. Letters that
// are absent from the result are summed over. Dims with the same letter have the same size, or size
// 1, which broadcasts. A letter that occurs twice in one operand selects the diagonal. "..." stands
// for further dims, aligned from the right. Without "->" the result has the dims of "..." and then,
// in alphabetical order, the letters that occur once. Operands are multiplied from left to right,
// by matmul if dims are summed over.
//   einsum("bqd,bkd->bqk", {q, k})   einsum("ii", {x}): the trace
Tensor einsum(std::string_view equation, const TensorListArg& operands);

// The sum of products over the last `dims` dims of a and the first `dims` dims of b, or over dims
// dims_a[i] of a and dims_b[i] of b. The result has the other dims of a, then the other dims of b.
//   tensordot(a (2, 3, 4), b (3, 4, 5)): (2, 5)
Tensor tensordot(const TensorArg& a, const TensorArg& b, int64_t dims = 2);
Tensor tensordot(const TensorArg& a, const TensorArg& b, const Ints& dims_a, const Ints& dims_b);

}  // namespace flow
