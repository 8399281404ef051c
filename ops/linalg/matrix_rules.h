// What the shape rules, layout rules and gradients of matrix ops share.
#pragma once

#include <cstdint>

#include "core/op.h"
#include "core/tensor.h"

namespace flow::ops {

// Checks that input i holds matrices of float32 or float64.
void check_matrices(const OpContext& ctx, int i);
// Checks that these are square.
void check_square(const OpContext& ctx, int i);
// Checks that input 1 holds matrices of the dtype and batch of input 0 with as many rows as those
// have columns.
void check_right_side(const OpContext& ctx);

// The size of dim -1 - from_end.
int64_t size_from_end(const Shape& shape, int64_t from_end);
// The shape without its last `count` dims.
Shape leading_dims(const Shape& shape, int64_t count);
// The shape of a batch of (rows, columns) matrices.
Shape matrix_shape(const Shape& batch, int64_t rows, int64_t columns);

// S(i) of all inputs and outputs for each dim before the last `core` ones of input 0: the matrices
// of a batch are independent.
void batch_sbp(SbpContext& ctx, int64_t core = 2);
// The rule of a x = b for x: also columns of b are independent, and x is linear in b.
void system_sbp(SbpContext& ctx);

// x with its last two dims swapped.
Tensor transposed(const Tensor& x);
// x with the batch dims `batch`, by which it is repeated.
Tensor with_batch(const TensorArg& x, const Shape& batch);
// The (rows, columns) identity with the dtype of x, whole on every rank of x.
Tensor identity_like(const Tensor& x, int64_t rows, int64_t columns);
// The numbers 0 … n - 1 with dtype `dtype`, whole on every rank of x.
Tensor counting_like(const Tensor& x, int64_t n, DType dtype);
// The lower triangle with half of the diagonal.
Tensor lower_half(const Tensor& x);

}  // namespace flow::ops
