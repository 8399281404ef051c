#include "ops/linalg/lapack_factors.h"

#include <algorithm>
#include <cstddef>

#include "ops/vendor/openblas.h"

namespace flow::ops {

namespace {

// LAPACK's matrices are column-major: it sees the transpose of a matrix in row-major memory, so
// each call is the mirror image of what it computes.

// Fortran passes the length of each text after the other arguments.
using Length = size_t;

template <class T>
struct Functions {
  using Potrf = void (*)(const char* uplo, const int* n, T* a, const int* lda, int* info, Length);
  using Getrf = void (*)(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
  using Sytrf = void (*)(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work,
                         const int* lwork, int* info, Length);
  using Trsm = void (*)(const char* side, const char* uplo, const char* trans, const char* diag,
                        const int* m, const int* n, const T* alpha, const T* a, const int* lda,
                        T* b, const int* ldb, Length, Length, Length, Length);
  using Gelqf = void (*)(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,
                         const int* lwork, int* info);
  using Orglq = void (*)(const int* m, const int* n, const int* k, T* a, const int* lda,
                         const T* tau, T* work, const int* lwork, int* info);
  using Syevd = void (*)(const char* jobz, const char* uplo, const int* n, T* a, const int* lda,
                         T* w, T* work, const int* lwork, int* iwork, const int* liwork, int* info,
                         Length, Length);
  using Gesdd = void (*)(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s,
                         T* u, const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork,
                         int* iwork, int* info, Length);

  Functions()
      : potrf(find<Potrf>("spotrf_", "dpotrf_")),
        getrf(find<Getrf>("sgetrf_", "dgetrf_")),
        sytrf(find<Sytrf>("ssytrf_", "dsytrf_")),
        trsm(find<Trsm>("strsm_", "dtrsm_")),
        gelqf(find<Gelqf>("sgelqf_", "dgelqf_")),
        orglq(find<Orglq>("sorglq_", "dorglq_")),
        syevd(find<Syevd>("ssyevd_", "dsyevd_")),
        gesdd(find<Gesdd>("sgesdd_", "dgesdd_")) {}

  bool has_all() const {
    return potrf != nullptr && getrf != nullptr && sytrf != nullptr && trsm != nullptr &&
           gelqf != nullptr && orglq != nullptr && syevd != nullptr && gesdd != nullptr;
  }

  template <class Function>
  static Function find(const char* of_floats, const char* of_doubles) {
    return reinterpret_cast<Function>(
        openblas_function(sizeof(T) == sizeof(float) ? of_floats : of_doubles));
  }

  Potrf potrf;
  Getrf getrf;
  Sytrf sytrf;
  Trsm trsm;
  Gelqf gelqf;
  Orglq orglq;
  Syevd syevd;
  Gesdd gesdd;
};

template <class T>
const Functions<T>& functions() {
  static const Functions<T> all;
  return all;
}

// Leading dims must not be 0.
int at_least_one(int64_t n) {
  return n > 0 ? static_cast<int>(n) : 1;
}

template <class T>
int64_t cholesky(int64_t n, T* a) {
  const int size = static_cast<int>(n), lda = at_least_one(n);
  int info = 0;
  functions<T>().potrf("U", &size, a, &lda, &info, 1);
  return info;
}

template <class T>
void lu_of_transpose(int64_t m, int64_t n, T* a, int32_t* pivots) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), lda = at_least_one(m);
  int info = 0;  // positive for a zero pivot, which the caller sees in U
  functions<T>().getrf(&rows, &columns, a, &lda, pivots, &info);
}

// The rows of a block of reflections or pivots; more do not help.
constexpr int64_t kBlock = 64;

FactorWork ldl_work(int64_t n) {
  return {.elements = at_least_one(kBlock * n)};
}

template <class T>
int64_t ldl_by_columns(int64_t n, T* a, int32_t* pivots, T* work) {
  const int size = static_cast<int>(n), lda = at_least_one(n);
  const int lwork = static_cast<int>(ldl_work(n).elements);
  int info = 0;
  functions<T>().sytrf("L", &size, a, &lda, pivots, work, &lwork, &info, 1);
  return info;
}

// T x = b is x^T T^T = b^T.
template <class T>
void solve_triangle(Triangle triangle, int64_t n, int64_t columns, const T* a, T* b) {
  const int rows = static_cast<int>(columns), size = static_cast<int>(n);
  const int lda = at_least_one(n), ldb = at_least_one(columns);
  const T one = 1;
  functions<T>().trsm("R", triangle.upper ? "L" : "U", triangle.transposed ? "T" : "N",
                      triangle.unit ? "U" : "N", &rows, &size, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}

template <class T>
void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
              const T* b, T* c) {
  if (m == 0 || n == 0) return;
  if (k == 0) return void(std::fill_n(c, m * n, T{0}));
  openblas_gemm(transpose_a, transpose_b, m, n, k, T{1}, a, transpose_a ? m : k, b,
                transpose_b ? k : n, T{0}, c, n);
}

// a = Q R is a^T = R^T Q^T, which is an LQ factorisation with the same reflections.
template <class T>
void qr(const QrSizes& sizes, T* a, T* r, T* work) {
  const int rows = static_cast<int>(sizes.columns), columns = static_cast<int>(sizes.rows);
  const int q_rows = static_cast<int>(sizes.q_columns);
  const int steps = static_cast<int>(sizes.reflections());
  const int lda = at_least_one(sizes.stride());
  const int lwork = at_least_one(kBlock * sizes.stride());
  T* const tau = work + lwork;
  int info = 0;
  functions<T>().gelqf(&rows, &columns, a, &lda, tau, work, &lwork, &info);
  for (int64_t i = 0; i < sizes.q_columns; ++i) {
    for (int64_t j = 0; j < sizes.columns; ++j)
      r[i * sizes.columns + j] = i < steps && j >= i ? a[i * sizes.stride() + j] : T{0};
  }
  functions<T>().orglq(&q_rows, &columns, &steps, a, &lda, tau, work, &lwork, &info);
}

template <class T>
void geqrf(int64_t m, int64_t n, T* a, T* tau, T* work) {
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), lda = at_least_one(n);
  const int lwork = at_least_one(kBlock * n);
  int info = 0;
  functions<T>().gelqf(&rows, &columns, a, &lda, tau, work, &lwork, &info);
}

FactorWork qr_work(const QrSizes& sizes) {
  return {.elements = at_least_one(kBlock * sizes.stride()) + sizes.reflections()};
}

// A symmetric matrix is its own transpose, and the columns that LAPACK writes are rows.
template <class T>
int64_t spectrum(const char* jobz, int64_t n, T* a, T* values, T* work, int32_t* ints) {
  const int size = static_cast<int>(n), lda = at_least_one(n);
  const int lwork = static_cast<int>(1 + 6 * n + 2 * n * n), liwork = static_cast<int>(3 + 5 * n);
  int info = 0;
  functions<T>().syevd(jobz, "L", &size, a, &lda, values, work, &lwork, ints, &liwork, &info, 1, 1);
  return info;
}

template <class T>
int64_t eigh(int64_t n, T* a, T* values, T* work, int32_t* ints) {
  return spectrum("V", n, a, values, work, ints);
}

template <class T>
int64_t eigvalsh(int64_t n, T* a, T* values, T* work, int32_t* ints) {
  return spectrum("N", n, a, values, work, ints);
}

FactorWork eigh_work(int64_t n) {
  return {.elements = 1 + 6 * n + 2 * n * n, .ints = 3 + 5 * n};
}

FactorWork svd_work(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  return {.elements = 4 * k * k + 7 * k + kBlock * (m + n) + 1, .ints = 8 * k};
}

// a = U S Vh is a^T = Vh^T S U^T, and the transposes of these factors are what LAPACK writes.
template <class T>
int64_t svd(int64_t m, int64_t n, T* a, T* u, T* s, T* vh, T* work, int32_t* ints) {
  const int rows = static_cast<int>(n), columns = static_cast<int>(m);
  const int lda = at_least_one(n), ldvt = at_least_one(std::min(m, n));
  const int lwork = static_cast<int>(svd_work(m, n).elements);
  int info = 0;
  functions<T>().gesdd("S", &rows, &columns, a, &lda, s, vh, &lda, u, &ldvt, work, &lwork, ints,
                       &info, 1);
  return info;
}

FactorWork svdvals_work(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  return {.elements = 10 * k + (kBlock + 1) * (m + n) + 1, .ints = 8 * k};
}

template <class T>
int64_t svdvals(int64_t m, int64_t n, T* a, T* s, T* work, int32_t* ints) {
  const int rows = static_cast<int>(n), columns = static_cast<int>(m);
  const int lda = at_least_one(n), unused = 1;
  const int lwork = static_cast<int>(svdvals_work(m, n).elements);
  T none = 0;
  int info = 0;
  functions<T>().gesdd("N", &rows, &columns, a, &lda, s, &none, &unused, &none, &unused, work,
                       &lwork, ints, &info, 1);
  return info;
}

}  // namespace

template <class T>
const Factors<T>* lapack_factors() {
  static constexpr Factors<T> kFactors{.cholesky = cholesky<T>,
                                       .lu_of_transpose = lu_of_transpose<T>,
                                       .ldl_by_columns = ldl_by_columns<T>,
                                       .solve_triangle = solve_triangle<T>,
                                       .multiply = multiply<T>,
                                       .qr = qr<T>,
                                       .geqrf = geqrf<T>,
                                       .eigh = eigh<T>,
                                       .eigvalsh = eigvalsh<T>,
                                       .svd = svd<T>,
                                       .svdvals = svdvals<T>,
                                       .ldl_work = ldl_work,
                                       .qr_work = qr_work,
                                       .eigh_work = eigh_work,
                                       .svd_work = svd_work,
                                       .svdvals_work = svdvals_work};
  return functions<T>().has_all() ? &kFactors : nullptr;
}

template const Factors<float>* lapack_factors<float>();
template const Factors<double>* lapack_factors<double>();

}  // namespace flow::ops
