// Op definitions of matrix factorisations and of solutions of linear systems, for their kernels.
// All take float32 or float64 matrices in the last two dims; the dims before them are a batch.
#pragma once

#include "core/op.h"

namespace flow::ops {

struct TriangularAttrs {
  bool upper = false;          // the triangle of a that is read
  bool transposed = false;     // the triangle is transposed after it was read
  bool unitriangular = false;  // its diagonal counts as ones

  static constexpr auto fields() {
    return std::tuple(key_field("upper", &TriangularAttrs::upper),
                      key_field("transposed", &TriangularAttrs::transposed),
                      key_field("unitriangular", &TriangularAttrs::unitriangular));
  }
};

struct SingularAttrs {
  bool refuses_singular = true;

  static constexpr auto fields() {
    return std::tuple(key_field("refuses_singular", &SingularAttrs::refuses_singular));
  }
};

struct PermutationAttrs {
  int64_t rows = 0;

  static constexpr auto fields() { return std::tuple(key_field("rows", &PermutationAttrs::rows)); }
};

struct QrAttrs {
  bool complete = false;  // Q is square

  static constexpr auto fields() { return std::tuple(key_field("complete", &QrAttrs::complete)); }
};

// Singular values up to max(atol, rtol * the largest one) count as zero.
struct PinvAttrs {
  double atol = 0;
  double rtol = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("atol", &PinvAttrs::atol), key_field("rtol", &PinvAttrs::rtol));
  }
};

// a (…, n, n) -> L (…, n, n), the Cholesky factor of the symmetric part of a.
extern const OpDef kCholesky;
// The same with a second output, info (…) as int32, where kCholesky raises: 0, or the order of the
// first leading minor that is not positive. Then L is NaN.
extern const OpDef kCholeskyEx;
// a (…, n, n), b (…, n, k) -> x (…, n, k) with triangle(a) x = b. Batches are equal.
extern const OpDef kSolveTriangular;
// a (…, m, n) -> LU (…, m, n), pivots (…, min(m, n)) as int32.
extern const OpDef kLuFactor;
// pivots (…, k) -> (…, rows) as int64: the row of the matrix that elimination moved to each place.
extern const OpDef kLuPermutation;
// a (…, n, n) -> LD (…, n, n), pivots (…, n) and info (…) as int32.
extern const OpDef kLdlFactor;
// LD (…, n, n), b (…, n, k), pivots (…, n) -> x (…, n, k) with a x = b. Batches are equal.
extern const OpDef kLdlSolve;
// a (…, n, n), b (…, n, k) -> x (…, n, k) with a x = b. Batches are equal.
extern const OpDef kSolve;
// The same with a second output, info (…) as int32, where kSolve raises: 0, or the number of the
// first zero on the diagonal of the factor U of a^T, counted from 1. Then x is NaN.
extern const OpDef kSolveEx;
// a (…, m, n) -> Q (…, m, k), R (…, k, n) with k = min(m, n), or m if complete.
extern const OpDef kQr;
// a (…, m, n) -> (…, m, n), tau (…, min(m, n)): R, and the reflections of which Q is the product.
extern const OpDef kGeqrf;
// a (…, n, n) -> eigenvalues (…, n), eigenvectors (…, n, n) of the symmetric part of a.
extern const OpDef kEigh;
// The eigenvalues alone.
extern const OpDef kEigvalsh;
// a (…, m, n) -> U (…, m, k), S (…, k), Vh (…, k, n) with k = min(m, n).
extern const OpDef kSvd;
// The singular values alone.
extern const OpDef kSvdvals;
// a (…, m, n) -> (…, n, m)
extern const OpDef kPinv;
// a (…, n, n) -> (…, n, n)
extern const OpDef kMatrixExp;

}  // namespace flow::ops
