// The QR factorisation.
#pragma once

#include <string>

#include "core/tensor.h"

namespace flow::linalg {

struct Qr {
  Tensor Q, R;
};

struct QrOptions {
  // "reduced": Q (…, m, k), R (…, k, n) with k = min(m, n); "complete": Q (…, m, m), R (…, m, n);
  // "r": R (…, k, n) only, and Q is empty.
  std::string mode = "reduced";
};

// x = Q R for matrices x (…, m, n) of float32 or float64; the columns of Q are orthonormal, and R
// is upper triangular. The signs are those of Householder's reflections in LAPACK, as in PyTorch: a
// diagonal element of R may be negative. The gradient needs the first k columns of x to be linearly
// independent, and exists for mode "complete" only if m <= n.
Qr qr(const TensorArg& x, const QrOptions& options = {});

}  // namespace flow::linalg
