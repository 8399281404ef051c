// Linear systems with a triangular matrix.
#pragma once

#include "core/tensor.h"

namespace flow::linalg {

struct SolveTriangularOptions {
  bool left = true;            // false: X A = B
  bool unitriangular = false;  // the diagonal counts as ones and is not read
};

// The solution X of A X = B with the upper or the lower triangle of A (…, n, n), which alone is
// read; B: (…, n, k), or (…, k, n) if not `left`. Batches broadcast. float32 or float64. Throws
// InvalidArgument if an element of the diagonal is zero, where PyTorch gives infinities.
Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper,
                        const SolveTriangularOptions& options = {});

}  // namespace flow::linalg
