// Eigenvalues of symmetric matrices.
#pragma once

#include "core/tensor.h"

namespace flow::linalg {

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};

// The eigenvalues (…, n), in ascending order, and the eigenvectors (…, n, n), in columns, of
// symmetric matrices x (…, n, n) of float32 or float64: x = V diag(w) V^T. The symmetric part
// (x + x^T) / 2 is decomposed, which is x itself if x is symmetric; PyTorch reads the triangle that
// UPLO names. Signs: in each eigenvector, the first element with at least 0.9 of the largest
// magnitude is positive; PyTorch has no rule. The gradient is symmetric. That of eigenvectors needs
// distinct eigenvalues, and a function of them that their signs do not change (Giles 2008). Throws
// InvalidArgument for a matrix with a NaN or an infinity.
Eigh eigh(const TensorArg& x);
// The eigenvalues alone; their gradient exists for repeated eigenvalues too.
Tensor eigvalsh(const TensorArg& x);

}  // namespace flow::linalg
