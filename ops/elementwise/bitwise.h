// Functions of the bits of integers. For bools they are the logical functions. Shapes broadcast and
// dtypes are promoted as in ops/elementwise/binary.h.
#pragma once

#include "core/tensor.h"

namespace flow {

Tensor bitwise_and(const TensorArg& a, const TensorArg& b);
Tensor bitwise_and(const TensorArg& a, const Scalar& b);
Tensor bitwise_or(const TensorArg& a, const TensorArg& b);
Tensor bitwise_or(const TensorArg& a, const Scalar& b);
Tensor bitwise_xor(const TensorArg& a, const TensorArg& b);
Tensor bitwise_xor(const TensorArg& a, const Scalar& b);
Tensor bitwise_not(const TensorArg& x);

// a 2^b, and a / 2^b rounded down, for integers only. If b is negative or at least the number of
// bits, no bit of a remains; the right shift then fills all bits with the sign.
Tensor bitwise_left_shift(const TensorArg& a, const TensorArg& b);
Tensor bitwise_left_shift(const TensorArg& a, const Scalar& b);
Tensor bitwise_right_shift(const TensorArg& a, const TensorArg& b);
Tensor bitwise_right_shift(const TensorArg& a, const Scalar& b);

// gt(x, 0) & lt(x, 1)
Tensor operator&(const TensorArg& a, const TensorArg& b);
Tensor operator|(const TensorArg& a, const TensorArg& b);
Tensor operator^(const TensorArg& a, const TensorArg& b);
Tensor operator~(const TensorArg& x);

// In place, as a.bitwise_and_(b) and its like.
Tensor& operator&=(Tensor& a, const TensorArg& b);
Tensor& operator|=(Tensor& a, const TensorArg& b);
Tensor& operator^=(Tensor& a, const TensorArg& b);

}  // namespace flow
