// Eigenvalues of symmetric matrices.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow::linalg {

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};

struct EighOptions {
  // "L" or "U": the lower or upper triangle of x, which alone is read and has a gradient. Unset:
  // the symmetric part (x + x^T) / 2. For a symmetric x all give the same.
  std::optional<std::string> UPLO = {};
};

// The eigenvalues (…, n), in ascending order, and the eigenvectors (…, n, n), in columns, of
// symmetric matrices x (…, n, n) of float32 or float64: x = V diag(w) V^T. Signs: in each
// eigenvector, the first element with at least 0.9 of the largest magnitude is positive; PyTorch
// has no rule. The gradient is symmetric. That of eigenvectors needs distinct eigenvalues, and a
// function of them that their signs do not change (Giles 2008). Throws InvalidArgument for a matrix
// with a NaN or an infinity.
Eigh eigh(const TensorArg& x, const EighOptions& options = {});
// The eigenvalues alone, which takes about a quarter of the time; their gradient exists for
// repeated eigenvalues too, and computes the vectors.
Tensor eigvalsh(const TensorArg& x, const EighOptions& options = {});

}  // namespace flow::linalg
