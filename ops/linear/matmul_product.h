// Describes the matrices that a call of a matrix product multiplies, for the kernels of every
// device.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// A batch of matrices. Element (i, j) is i * row + j * column elements after the batch offset.
// Broadcast batch dims have stride 0.
struct MatrixOperand {
  Strides batch;
  int64_t row = 0;
  int64_t column = 0;
};

// c[batch] = a[batch] b[batch], (m, k) by (k, n); c is contiguous.
struct MatrixProduct {
  Shape batch;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  MatrixOperand a, b;
  int64_t bias_stride = 0;
};

MatrixProduct matmul_product(const KernelQuery& query);
// Treats x (batch..., in) as rows of size 1 x in and reads w as its transpose.
MatrixProduct linear_product(const KernelQuery& query);

// Merges dims [0, num_dims) into one and gives its stride and count. Returns false if the dims are
// not evenly spaced.
bool collapse(const Shape& shape, const Strides& strides, int64_t num_dims, int64_t& count,
              int64_t& stride);

}  // namespace flow::ops
