// Matrix products.
#pragma once

#include "core/tensor.h"

namespace flow {

// Matrix product over the last dim of a and the second-last dim of b, as in PyTorch. The operands
// have the same dtype (any but bool); 16-bit floats are accumulated in float32.
//   (k), (k) -> ()            (m, k), (k, n) -> (m, n)
//   (k), (k, n) -> (n)        (m, k), (k) -> (m)
//   (batch a..., m, k), (batch b..., k, n) -> (batch..., m, n), batch dims broadcast
//
//   Tensor y = matmul(x, w.t());   // the transposed view is read without a copy
Tensor matmul(const TensorArg& a, const TensorArg& b);

// matmul with exactly these dims: (m, k), (k, n) -> (m, n).
Tensor mm(const TensorArg& a, const TensorArg& b);

// (batch, m, k), (batch, k, n) -> (batch, m, n).
Tensor bmm(const TensorArg& a, const TensorArg& b);

// (m, k), (k) -> (m).
Tensor mv(const TensorArg& a, const TensorArg& b);

// (k), (k) -> ().
Tensor dot(const TensorArg& a, const TensorArg& b);

// beta * input + alpha * mm(mat1, mat2); `input` broadcasts to (m, n) and is not read if beta is 0.
Tensor addmm(const TensorArg& input, const TensorArg& mat1, const TensorArg& mat2,
             const AddmmOptions& options = {});

// beta * input + alpha * bmm(batch1, batch2).
Tensor baddbmm(const TensorArg& input, const TensorArg& batch1, const TensorArg& batch2,
               const AddmmOptions& options = {});

// y = x w^T + bias; x: (..., in), weight: (out, in), bias: (out) or undefined -> (..., out). A
// weight of shape (in) gives (...); its bias has one element.
//
//   Tensor y = linear(x, layer.weight, layer.bias);
Tensor linear(const TensorArg& x, const TensorArg& weight, const TensorArg& bias = Tensor());

}  // namespace flow
