// The exponential of matrices on the CPU, by plain loops and by LAPACK.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_matrix_exp(KernelTable& table);

namespace {

// The numerator of the diagonal Padé approximant of degree 13; the denominator has the same
// coefficients with alternating signs.
constexpr std::array<double, 14> kPade = {64764752532480000.,
                                          32382376266240000.,
                                          7771770303897600.,
                                          1187353796428800.,
                                          129060195264000.,
                                          10559470521600.,
                                          670442572800.,
                                          33522128640.,
                                          1323241920.,
                                          40840800.,
                                          960960.,
                                          16380.,
                                          182.,
                                          1.};

// Up to this 1-norm the approximant is exact to rounding in double (Higham 2005, table 2.3).
constexpr double kLargestNorm = 5.371920351148152;

constexpr int64_t kNumMatrices = 7;

int64_t scratch_of_exp(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  return kNumMatrices * state.rows * state.rows * element +
         state.rows * static_cast<int64_t>(sizeof(int32_t));
}

template <class T>
double one_norm(const T* x, int64_t n) {
  double largest = 0;
  for (int64_t column = 0; column < n; ++column) {
    double total = 0;
    for (int64_t row = 0; row < n; ++row)
      total += std::abs(static_cast<double>(x[row * n + column]));
    largest = std::max(largest, total);
  }
  return largest;
}

// The matrices of one exponential.
template <class T>
struct Powers {
  Powers(T* memory, int64_t size)
      : n(size),
        x(memory),
        x2(x + n * n),
        x4(x2 + n * n),
        x6(x4 + n * n),
        odd(x6 + n * n),
        even(odd + n * n),
        spare(even + n * n),
        pivots(reinterpret_cast<int32_t*>(spare + n * n)) {}

  // to = c6 x6 + c4 x4 + c2 x2 + c0 I
  void combine(double c6, double c4, double c2, double c0, T* to) const {
    for (int64_t i = 0; i < n * n; ++i) {
      to[i] = static_cast<T>(c6) * x6[i] + static_cast<T>(c4) * x4[i] + static_cast<T>(c2) * x2[i];
    }
    for (int64_t i = 0; i < n; ++i)
      to[i * n + i] += static_cast<T>(c0);
  }

  int64_t n;
  T* x;
  T* x2;
  T* x4;
  T* x6;
  T* odd;   // the odd terms of the numerator
  T* even;  // the even ones
  T* spare;
  int32_t* pivots;
};

// Solves a y = b as the op `solve` does; overwrites both.
template <class T>
void solve_in_place(const Factors<T>& own, int64_t n, T* a, T* b, int32_t* pivots) {
  own.lu_of_transpose(n, n, a, pivots);
  own.solve_triangle({.upper = false}, n, n, a, b);
  own.solve_triangle({.upper = true, .unit = true}, n, n, a, b);
  for (int64_t k = n; k-- > 0;) {
    const int64_t other = pivots[k] - 1;
    if (other != k) std::swap_ranges(b + k * n, b + (k + 1) * n, b + other * n);
  }
}

// `scratch` holds x at its beginning. The result is written to y.
template <class T, bool kPlain>
void exponential(const Powers<T>& p, int64_t squarings, T* y) {
  const Factors<T>& own = factors<T, kPlain>();
  const int64_t n = p.n, size = n * n;
  const auto multiply = [&](const T* a, const T* b, T* c) {
    own.multiply(false, false, n, n, n, a, b, c);
  };
  multiply(p.x, p.x, p.x2);
  multiply(p.x2, p.x2, p.x4);
  multiply(p.x4, p.x2, p.x6);
  // odd = x (x6 (c13 x6 + c11 x4 + c9 x2) + c7 x6 + c5 x4 + c3 x2 + c1 I)
  p.combine(kPade[13], kPade[11], kPade[9], 0, p.spare);
  multiply(p.x6, p.spare, p.even);
  p.combine(kPade[7], kPade[5], kPade[3], kPade[1], p.spare);
  for (int64_t i = 0; i < size; ++i)
    p.spare[i] += p.even[i];
  multiply(p.x, p.spare, p.odd);
  // even = x6 (c12 x6 + c10 x4 + c8 x2) + c6 x6 + c4 x4 + c2 x2 + c0 I
  p.combine(kPade[12], kPade[10], kPade[8], 0, p.spare);
  multiply(p.x6, p.spare, p.even);
  p.combine(kPade[6], kPade[4], kPade[2], kPade[0], p.spare);
  for (int64_t i = 0; i < size; ++i)
    p.even[i] += p.spare[i];
  for (int64_t i = 0; i < size; ++i) {
    y[i] = p.even[i] + p.odd[i];
    p.even[i] -= p.odd[i];
  }
  solve_in_place(own, n, p.even, y, p.pivots);
  for (int64_t i = 0; i < squarings; ++i) {
    multiply(y, y, p.spare);
    std::copy_n(p.spare, size, y);
  }
}

template <class T, bool kPlain>
void run_exp(const KernelContext& ctx) {
  const int64_t n = ctx.state_as<MatrixState>().rows;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  for_each_matrix(ctx, 16 * n * n * n, [&](int64_t i, std::byte* scratch) {
    const T* const source = x.data() + i * n * n;
    check_finite_matrix(ctx, "matrix_exp", i, n * n, source);
    const Powers<T> powers(reinterpret_cast<T*>(scratch), n);
    const double norm = one_norm(source, n);
    const int64_t squarings =
        norm <= kLargestNorm ? 0 : static_cast<int64_t>(std::ceil(std::log2(norm / kLargestNorm)));
    const T scale = static_cast<T>(std::ldexp(1.0, -static_cast<int>(squarings)));
    for (int64_t j = 0; j < n * n; ++j)
      powers.x[j] = source[j] * scale;
    exponential<T, kPlain>(powers, squarings, y.data() + i * n * n);
  });
  y.finish(ctx);
}

}  // namespace

void register_matrix_exp(KernelTable& table) {
  table.add(kMatrixExp, DeviceType::kCpu,
            {"reference", select_plain<run_exp<double, true>, scratch_of_exp>});
  if (!is_openblas_built_in()) return;
  table.add(
      kMatrixExp, DeviceType::kCpu,
      {"lapack", select_lapack<run_exp<float, false>, run_exp<double, false>, scratch_of_exp>});
}

}  // namespace flow::ops
