// The exponential of matrices on the CPU, by plain loops and by LAPACK.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_matrix_exp(KernelTable& table);

namespace {

// Up to this 1-norm, the terms up to x^18 / 18! are exact to rounding (Bader, Blanes and Casas
// 2019, table 2).
template <class T>
constexpr double kLargestNorm = sizeof(T) == 4 ? 3.010066362817634 : 1.090863719290036;

constexpr size_t kDegree = 18;

// 1 / k! for each term.
constexpr std::array<double, kDegree + 1> kTerms = [] {
  std::array<double, kDegree + 1> terms{1};
  for (size_t k = 1; k < terms.size(); ++k)
    terms[k] = terms[k - 1] / static_cast<double>(k);
  return terms;
}();

constexpr int64_t kNumMatrices = 5;

int64_t scratch_of_exp(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  return kNumMatrices * state.rows * state.rows * element;
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
      : n(size), x(memory), x2(x + n * n), x3(x2 + n * n), x4(x3 + n * n), spare(x4 + n * n) {}

  // to += four terms from that of x^first on, without the factor x^first.
  void add_terms(size_t first, T* to) const {
    const auto term = [first](size_t i) {
      return first + i <= kDegree ? static_cast<T>(kTerms[first + i]) : T{0};
    };
    for (int64_t i = 0; i < n * n; ++i)
      to[i] += term(3) * x3[i] + term(2) * x2[i] + term(1) * x[i];
    for (int64_t i = 0; i < n; ++i)
      to[i * n + i] += term(0);
  }

  int64_t n;
  T* x;
  T* x2;
  T* x3;
  T* x4;
  T* spare;
};

// The powers hold x. The result is written to y: four terms at a time by Horner's rule in x^4, then
// its squares. Products alone leave the zeros of a triangular matrix, and the ones of its
// exponential, as they are; the rounding of a system's solution would grow with every squaring.
template <class T, bool kPlain>
void exponential(const Powers<T>& p, int64_t squarings, T* y) {
  const Factors<T>& own = factors<T, kPlain>();
  const int64_t n = p.n, size = n * n;
  const auto multiply = [&](const T* a, const T* b, T* c) {
    own.multiply(false, false, n, n, n, a, b, c);
  };
  multiply(p.x, p.x, p.x2);
  multiply(p.x2, p.x, p.x3);
  multiply(p.x2, p.x2, p.x4);
  std::fill_n(y, size, T{0});
  p.add_terms(16, y);
  for (const size_t first : std::initializer_list<size_t>{12, 8, 4, 0}) {
    multiply(p.x4, y, p.spare);
    std::copy_n(p.spare, size, y);
    p.add_terms(first, y);
  }
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
    const double share = norm / kLargestNorm<T>;
    const int64_t squarings = share <= 1 ? 0 : static_cast<int64_t>(std::ceil(std::log2(share)));
    for (int64_t j = 0; j < n * n; ++j)
      powers.x[j] = std::ldexp(source[j], -static_cast<int>(squarings));
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
