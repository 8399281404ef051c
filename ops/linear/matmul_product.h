// What a call of a matrix product multiplies, for kernels of any device.
#pragma once

#include <cstdint>

#include "core/kernel.h"

namespace flow::ops {

// Matrices at batch positions: element (i, j) lies i * row + j * column beyond the batch offset.
// Strides of broadcast batch dims are 0.
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
// x (batch..., in) as rows of length 1 x in, w read as its transpose.
MatrixProduct linear_product(const KernelQuery& query);

// The strides and count of dims [0, num_dims) seen as one; false when they are not evenly spaced.
bool collapse(const Shape& shape, const Strides& strides, int64_t num_dims, int64_t& count,
              int64_t& stride);

}  // namespace flow::ops
