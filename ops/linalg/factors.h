// Factorisations of a single matrix in row-major memory. There are two implementations: plain loops
// (plain_factors.h) and LAPACK (lapack_factors.h). Both follow the conventions of LAPACK, so that
// they differ by rounding only.
#pragma once

#include <cstdint>

namespace flow::ops {

// Which triangle of a matrix is read, and how.
struct Triangle {
  bool upper = false;
  bool transposed = false;
  bool unit = false;
};

// A QR factorisation of a (rows, columns); Q has q_columns columns, min(rows, columns) or rows.
struct QrSizes {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t q_columns = 0;

  // The distance of rows in memory that holds first a and then Q.
  int64_t stride() const { return columns > q_columns ? columns : q_columns; }

  int64_t reflections() const { return rows < columns ? rows : columns; }
};

// The scratch memory of a factorisation, in elements and in ints.
struct FactorWork {
  int64_t elements = 0;
  int64_t ints = 0;
};

template <class T>
struct Factors {
  // Replaces the lower triangle of the symmetric a (n, n), which alone is read, by L of a = L L^T.
  // Returns 0, or the order of the first leading minor that is not positive.
  int64_t (*cholesky)(int64_t n, T* a);
  // Factorises the transpose of a (n, m): a^T = P L U with partial pivoting. Afterwards a[j][i] is
  // the element (i, j) of U if i <= j and else of L. Row i of the transpose was swapped with row
  // pivots[i] - 1 in step i; there are min(m, n) steps.
  void (*lu_of_transpose)(int64_t m, int64_t n, T* a, int32_t* pivots);
  // Factorises a symmetric matrix a = P L D L^T P^T by the method of Bunch and Kaufman; a[j][i] is
  // its element (i, j), of which those with i >= j alone are read and replaced, as LAPACK's sytrf
  // does. Returns 0, or the number of the first block of D that is zero, counted in rows from 1.
  int64_t (*ldl_by_columns)(int64_t n, T* a, int32_t* pivots, T* work);
  // Replaces b (n, columns) by the solution of triangle(a) x = b. Requires: a diagonal without
  // zeros, unless it counts as ones.
  void (*solve_triangle)(Triangle triangle, int64_t n, int64_t columns, const T* a, T* b);
  // c (m, n) = op(a) op(b), where op(a) is (m, k).
  void (*multiply)(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                   const T* b, T* c);
  // Replaces a, whose rows are stride() apart, by Q, and writes R (q_columns, columns). The
  // reflections are those of Householder in LAPACK's form: a diagonal element of R has the opposite
  // sign of the element that it replaces, unless the rest of the column is zero.
  void (*qr)(const QrSizes& sizes, T* a, T* r, T* work);
  // The same reflections, of which a (m, n) keeps the vectors below its diagonal and R on and above
  // it; tau has min(m, n) factors. The workspace is that of qr for no columns of Q.
  void (*geqrf)(int64_t m, int64_t n, T* a, T* tau, T* work);
  // Replaces the symmetric a (n, n) by its eigenvectors, one in each row, and writes the
  // eigenvalues in ascending order. Returns 0 unless the iteration does not converge. Requires:
  // finite values.
  int64_t (*eigh)(int64_t n, T* a, T* values, T* work, int32_t* ints);
  // The eigenvalues alone; a is overwritten. The workspace is that of eigh.
  int64_t (*eigvalsh)(int64_t n, T* a, T* values, T* work, int32_t* ints);
  // The singular values of a (m, n), which is overwritten, in descending order; u (m, k) and vh
  // (k, n) with k = min(m, n). Returns as eigh does. Requires: finite values.
  int64_t (*svd)(int64_t m, int64_t n, T* a, T* u, T* s, T* vh, T* work, int32_t* ints);

  // The singular values alone.
  int64_t (*svdvals)(int64_t m, int64_t n, T* a, T* s, T* work, int32_t* ints);

  FactorWork (*ldl_work)(int64_t n);
  FactorWork (*qr_work)(const QrSizes& sizes);
  FactorWork (*eigh_work)(int64_t n);
  FactorWork (*svd_work)(int64_t m, int64_t n);
  FactorWork (*svdvals_work)(int64_t m, int64_t n);
};

}  // namespace flow::ops
