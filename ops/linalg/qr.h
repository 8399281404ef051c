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

struct Geqrf {
  Tensor a, tau;
};

// The QR factorisation as LAPACK gives it: a (…, m, n) has R on and above its diagonal, and below
// it the reflections of which Q is the product, with the factors tau (…, min(m, n)). Q is
// householder_product(a, tau) if m >= n. Has no gradient; qr() has one.
Geqrf geqrf(const TensorArg& x);

// The first n columns of the product H_1 H_2 … H_k of reflections H_i = I - tau[i] v_i v_i^T; x:
// (…, m, n) with m >= n >= k holds v_i below the diagonal of column i, where v_i is 1 on it and 0
// above it; tau: (…, k). These are the reflections of geqrf. Computed as I - V T V^T
// (Schreiber, Van Loan 1989) by matrix products and a triangular system.
Tensor householder_product(const TensorArg& x, const TensorArg& tau);

struct OrmqrOptions {
  bool left = true;        // Q y; else y Q
  bool transpose = false;  // Q^T in place of Q
};

// The product of y (…, m, k) and the square Q (…, m, m) of which householder_product(x, tau) has
// the first columns; of y (…, k, m) if not `left`. Q itself is not computed.
Tensor ormqr(const TensorArg& x, const TensorArg& tau, const TensorArg& y,
             const OrmqrOptions& options = {});

}  // namespace flow::linalg

namespace flow {

using linalg::geqrf;
using linalg::ormqr;

// The same as linalg::householder_product.
Tensor orgqr(const TensorArg& x, const TensorArg& tau);

}  // namespace flow
