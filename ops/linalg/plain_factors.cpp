#include "ops/linalg/plain_factors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace flow::ops {

namespace {

int64_t cholesky(int64_t n, double* a) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double rest = a[i * n + j];
      for (int64_t k = 0; k < j; ++k)
        rest -= a[i * n + k] * a[j * n + k];
      if (j < i) {
        a[i * n + j] = rest / a[j * n + j];
      } else if (rest > 0) {
        a[i * n + i] = std::sqrt(rest);
      } else {
        return i + 1;  // also for NaN
      }
    }
  }
  return 0;
}

void lu_of_transpose(int64_t m, int64_t n, double* a, int32_t* pivots) {
  const auto at = [&](int64_t i, int64_t j) -> double& { return a[j * m + i]; };
  for (int64_t k = 0; k < m && k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
    }
    pivots[k] = static_cast<int32_t>(pivot + 1);
    if (at(pivot, k) == 0) continue;
    for (int64_t j = 0; pivot != k && j < n; ++j)
      std::swap(at(k, j), at(pivot, j));
    for (int64_t i = k + 1; i < m; ++i) {
      at(i, k) /= at(k, k);
      for (int64_t j = k + 1; j < n; ++j)
        at(i, j) -= at(i, k) * at(k, j);
    }
  }
}

// A symmetric matrix of which the lower triangle alone is stored, by columns.
struct LowerTriangle {
  int64_t n;
  double* a;

  double& at(int64_t i, int64_t j) const { return i < j ? a[i * n + j] : a[j * n + i]; }

  // The row other than k, from row `first` on, with the largest element in column k; k if there is
  // none.
  int64_t largest_row(int64_t k, int64_t first) const {
    int64_t row = k;
    double largest = -1;
    for (int64_t i = first; i < n; ++i) {
      if (i == k || !(std::abs(at(i, k)) > largest)) continue;
      row = i;
      largest = std::abs(at(i, k));
    }
    return row;
  }

  // Swaps rows and columns i < j of the part that begins at `first`.
  void swap(int64_t first, int64_t i, int64_t j) const {
    for (int64_t k = first; k < n; ++k) {
      if (k != i && k != j) std::swap(at(i, k), at(j, k));
    }
    std::swap(at(i, i), at(j, j));
  }

  void eliminate_one(int64_t k) const {
    for (int64_t j = k + 1; j < n; ++j) {
      const double factor = at(j, k) / at(k, k);
      for (int64_t i = j; i < n; ++i)
        at(i, j) -= at(i, k) * factor;
    }
    for (int64_t i = k + 1; i < n; ++i)
      at(i, k) /= at(k, k);
  }

  // Of the block of rows k and k + 1, divided by its largest element.
  void eliminate_two(int64_t k) const {
    const double corner = at(k + 1, k);
    const double first = at(k, k) / corner, second = at(k + 1, k + 1) / corner;
    const double scale = 1 / (corner * (first * second - 1));
    for (int64_t j = k + 2; j < n; ++j) {
      const double left = scale * (second * at(j, k) - at(j, k + 1));
      const double right = scale * (first * at(j, k + 1) - at(j, k));
      for (int64_t i = j; i < n; ++i)
        at(i, j) -= at(i, k) * left + at(i, k + 1) * right;
      at(j, k) = left;
      at(j, k + 1) = right;
    }
  }
};

// The rows of the block that begins at k, and the row that becomes its last one.
struct BlockPivot {
  int64_t size = 1;
  int64_t row = 0;
};

// Of the blocks with one and with two rows, that whose elimination makes elements grow less.
BlockPivot choose_pivot(const LowerTriangle& x, int64_t k) {
  const double share = (1 + std::sqrt(17.0)) / 8;
  const int64_t other = x.largest_row(k, k);
  const double own = std::abs(x.at(k, k)), below = std::abs(x.at(other, k));
  if (other == k || !(own < share * below)) return {1, k};  // also for NaN
  const double beside = std::abs(x.at(x.largest_row(other, k), other));
  if (own >= share * below * (below / beside)) return {1, k};
  return {std::abs(x.at(other, other)) >= share * beside ? 1 : 2, other};
}

int64_t ldl_by_columns(int64_t n, double* a, int32_t* pivots, double* /*work*/) {
  const LowerTriangle x{n, a};
  int64_t zero = 0;
  for (int64_t k = 0; k < n;) {
    const BlockPivot pivot = choose_pivot(x, k);
    const int64_t last = k + pivot.size - 1;
    const auto number = static_cast<int32_t>(pivot.row + 1);
    if (pivot.row != last) x.swap(k, last, pivot.row);
    if (pivot.size == 2) {
      pivots[k] = pivots[k + 1] = -number;
      x.eliminate_two(k);
    } else {
      pivots[k] = number;
      if (x.at(k, k) != 0) {
        x.eliminate_one(k);
      } else if (zero == 0) {
        zero = k + 1;
      }
    }
    k += pivot.size;
  }
  return zero;
}

FactorWork ldl_work(int64_t /*n*/) {
  return {};
}

void solve_triangle(Triangle triangle, int64_t n, int64_t columns, const double* a, double* b) {
  const auto at = [&](int64_t i, int64_t j) {
    return triangle.transposed ? a[j * n + i] : a[i * n + j];
  };
  const bool is_upper = triangle.upper != triangle.transposed;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = is_upper ? n - 1 - step : step;
    for (int64_t c = 0; c < columns; ++c) {
      double rest = b[i * columns + c];
      for (int64_t j = is_upper ? i + 1 : 0; j < (is_upper ? n : i); ++j)
        rest -= at(i, j) * b[j * columns + c];
      b[i * columns + c] = triangle.unit ? rest : rest / at(i, i);
    }
  }
}

void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double* a,
              const double* b, double* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += (transpose_a ? a[p * m + i] : a[i * k + p]) *
               (transpose_b ? b[j * k + p] : b[p * n + j]);
      c[i * n + j] = sum;
    }
  }
}

// Applies I - tau v v^T from the left to the columns [begin, end) of x, from row `first` on; v has
// the elements of the rows from `first` on.
void reflect(const double* v, double tau, int64_t first, const QrSizes& sizes, int64_t begin,
             int64_t end, double* x) {
  for (int64_t j = begin; j < end; ++j) {
    double dot = 0;
    for (int64_t i = first; i < sizes.rows; ++i)
      dot += v[i] * x[i * sizes.stride() + j];
    for (int64_t i = first; i < sizes.rows; ++i)
      x[i * sizes.stride() + j] -= tau * dot * v[i];
  }
}

// Replaces the upper triangle of a by R, and writes the factors and the vectors of the reflections.
void eliminate(const QrSizes& sizes, double* a, double* taus, double* vectors) {
  const int64_t m = sizes.rows, n = sizes.columns, k = sizes.reflections();
  const int64_t stride = sizes.stride();
  for (int64_t step = 0; step < k; ++step) {
    double* const v = vectors + step * m;
    double below = 0;
    for (int64_t i = step + 1; i < m; ++i)
      below = std::hypot(below, a[i * stride + step]);
    const double alpha = a[step * stride + step];
    v[step] = 1;
    taus[step] = 0;
    for (int64_t i = step + 1; i < m; ++i)
      v[i] = 0;
    if (below == 0) continue;
    const double beta = -std::copysign(std::hypot(alpha, below), alpha);
    taus[step] = (beta - alpha) / beta;
    for (int64_t i = step + 1; i < m; ++i)
      v[i] = a[i * stride + step] / (alpha - beta);
    reflect(v, taus[step], step, sizes, step + 1, n, a);
    a[step * stride + step] = beta;
  }
}

void geqrf(int64_t m, int64_t n, double* a, double* tau, double* work) {
  const QrSizes sizes{m, n, 0};
  eliminate(sizes, a, tau, work);
  for (int64_t step = 0; step < sizes.reflections(); ++step) {
    for (int64_t i = step + 1; i < m; ++i)
      a[i * n + step] = work[step * m + i];
  }
}

// `work` holds the factors tau and the vectors v of all reflections.
void qr(const QrSizes& sizes, double* a, double* r, double* work) {
  const int64_t m = sizes.rows, n = sizes.columns, k = sizes.reflections();
  const int64_t stride = sizes.stride();
  double* const taus = work;
  double* const vectors = work + k;
  eliminate(sizes, a, taus, vectors);
  for (int64_t i = 0; i < sizes.q_columns; ++i) {
    for (int64_t j = 0; j < n; ++j)
      r[i * n + j] = i < k && j >= i ? a[i * stride + j] : 0;
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < sizes.q_columns; ++j)
      a[i * stride + j] = i == j ? 1 : 0;
  }
  for (int64_t step = k; step-- > 0;)
    reflect(vectors + step * m, taus[step], step, sizes, 0, sizes.q_columns, a);
}

FactorWork qr_work(const QrSizes& sizes) {
  return {.elements = sizes.reflections() * (1 + sizes.rows)};
}

struct Rotation {
  double cosine, sine;
};

// The rotation that makes the product of two directions with squares a, b and product c zero.
Rotation rotation_of(double a, double b, double c) {
  const double zeta = (b - a) / (2 * c);
  const double tangent = std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta);
  const double cosine = 1 / std::hypot(1, tangent);
  return {cosine, cosine * tangent};
}

// Turns x and y, whose elements are `stride` apart.
void rotate(Rotation turn, int64_t n, int64_t stride, double* x, double* y) {
  for (int64_t i = 0; i < n; ++i) {
    const double before = x[i * stride];
    x[i * stride] = turn.cosine * before - turn.sine * y[i * stride];
    y[i * stride] = turn.sine * before + turn.cosine * y[i * stride];
  }
}

constexpr int kMaxSweeps = 100;

// Jacobi's method with cyclic sweeps; the rows of `work` become the eigenvectors.
int64_t eigh(int64_t n, double* a, double* values, double* work, int32_t* /*ints*/) {
  for (int64_t i = 0; i < n * n; ++i)
    work[i] = i / n == i % n ? 1 : 0;
  bool has_turned = true;
  for (int sweep = 0; has_turned; ++sweep) {
    if (sweep == kMaxSweeps) return 1;
    has_turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double own = a[p * n + q];
        if (std::abs(own) <= 1e-17 * (std::abs(a[p * n + p]) + std::abs(a[q * n + q]))) continue;
        has_turned = true;
        const Rotation turn = rotation_of(a[p * n + p], a[q * n + q], own);
        rotate(turn, n, 1, a + p * n, a + q * n);
        rotate(turn, n, n, a + p, a + q);
        a[p * n + q] = a[q * n + p] = 0;
        rotate(turn, n, 1, work + p * n, work + q * n);
      }
    }
  }
  for (int64_t i = 0; i < n; ++i)
    values[i] = a[i * n + i];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t least = std::min_element(values + i, values + n) - values;
    if (least == i) continue;
    std::swap(values[i], values[least]);
    std::swap_ranges(work + i * n, work + (i + 1) * n, work + least * n);
  }
  std::copy_n(work, n * n, a);
  return 0;
}

FactorWork eigh_work(int64_t n) {
  return {.elements = n * n};
}

double dot(const double* x, const double* y, int64_t n) {
  return std::inner_product(x, x + n, y, 0.0);
}

// Makes row `row` of x orthogonal to the rows before, which have length 1, and returns its length.
double make_orthogonal(int64_t row, int64_t n, double* x) {
  double* const own = x + row * n;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t other = 0; other < row; ++other) {
      const double part = dot(own, x + other * n, n);
      for (int64_t i = 0; i < n; ++i)
        own[i] -= part * x[other * n + i];
    }
  }
  return std::sqrt(dot(own, own, n));
}

// Makes row `row` of x a unit vector that is orthogonal to the rows before. A row that consists of
// what those leave to rounding, such as a zero row, becomes another vector.
void make_unit(int64_t row, int64_t n, double size, double* x) {
  double* const own = x + row * n;
  double length = 0;
  if (size > 1e-300) {
    for (int64_t i = 0; i < n; ++i)
      own[i] /= size;
    length = make_orthogonal(row, n, x);
  }
  double least = 0.5;
  for (int64_t axis = 0; length < least && axis < n; ++axis) {
    std::fill_n(own, n, 0.0);
    own[axis] = 1;
    length = make_orthogonal(row, n, x);
    least = 0.5 / std::sqrt(static_cast<double>(n));
  }
  for (int64_t i = 0; i < n; ++i)
    own[i] /= length;
}

// The power of two that makes the largest of n elements smaller than 1, but at least a half.
int power_of_largest(const double* x, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    largest = std::max(largest, std::abs(x[i]));
  int power = 0;
  std::frexp(largest, &power);
  return power;
}

// The one-sided method of Hestenes (1958): the shorter sides of a are turned until they are
// orthogonal. `work` holds these as rows, then the turns. A side that is only rounding next to
// another has no direction that turns could find. The largest element becomes about 1, so that no
// square overflows.
int64_t svd(int64_t m, int64_t n, double* a, double* u, double* s, double* vh, double* work,
            int32_t* /*ints*/) {
  const bool is_tall = m >= n;
  const int64_t k = std::min(m, n), length = std::max(m, n);
  const double least = 1e-15 * std::sqrt(static_cast<double>(length));
  const double rounding = 2.2e-16 * static_cast<double>(length);
  double* const sides = work;
  double* const turns = work + k * length;
  const int power = power_of_largest(a, m * n);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < length; ++j)
      sides[i * length + j] = std::ldexp(is_tall ? a[j * n + i] : a[i * n + j], -power);
  }
  for (int64_t i = 0; i < k * k; ++i)
    turns[i] = i / k == i % k ? 1 : 0;
  bool has_turned = true;
  for (int sweep = 0; has_turned; ++sweep) {
    if (sweep == kMaxSweeps) return 1;
    has_turned = false;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t q = p + 1; q < k; ++q) {
        double* const x = sides + p * length;
        double* const y = sides + q * length;
        const double xx = dot(x, x, length), yy = dot(y, y, length), xy = dot(x, y, length);
        if (std::abs(xy) <= least * std::sqrt(xx * yy)) continue;
        if (std::min(xx, yy) <= rounding * rounding * std::max(xx, yy)) continue;
        has_turned = true;
        const Rotation turn = rotation_of(xx, yy, xy);
        rotate(turn, length, 1, x, y);
        rotate(turn, k, 1, turns + p * k, turns + q * k);
      }
    }
  }
  for (int64_t i = 0; i < k; ++i)
    s[i] = std::sqrt(dot(sides + i * length, sides + i * length, length));
  for (int64_t i = 0; i < k; ++i) {
    const int64_t most = std::max_element(s + i, s + k) - s;
    if (most == i) continue;
    std::swap(s[i], s[most]);
    std::swap_ranges(sides + i * length, sides + (i + 1) * length, sides + most * length);
    std::swap_ranges(turns + i * k, turns + (i + 1) * k, turns + most * k);
  }
  for (int64_t i = 0; i < k; ++i) {
    make_unit(i, length, s[i], sides);
    s[i] = std::ldexp(s[i], power);
    const double* const side = sides + i * length;
    for (int64_t j = 0; j < m; ++j)
      u[j * k + i] = is_tall ? side[j] : turns[i * k + j];
    for (int64_t j = 0; j < n; ++j)
      vh[i * n + j] = is_tall ? turns[i * k + j] : side[j];
  }
  return 0;
}

FactorWork svd_work(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  return {.elements = k * (std::max(m, n) + k)};
}

// Jacobi's method finds the vectors on its way.
int64_t svdvals(int64_t m, int64_t n, double* a, double* s, double* work, int32_t* ints) {
  double* const vectors = work + svd_work(m, n).elements;
  return svd(m, n, a, vectors, s, vectors + m * std::min(m, n), work, ints);
}

FactorWork svdvals_work(int64_t m, int64_t n) {
  return {.elements = svd_work(m, n).elements + (m + n) * std::min(m, n)};
}

}  // namespace

const Factors<double>& plain_factors() {
  static constexpr Factors<double> kFactors{.cholesky = cholesky,
                                            .lu_of_transpose = lu_of_transpose,
                                            .ldl_by_columns = ldl_by_columns,
                                            .solve_triangle = solve_triangle,
                                            .multiply = multiply,
                                            .qr = qr,
                                            .geqrf = geqrf,
                                            .eigh = eigh,
                                            .eigvalsh = eigh,
                                            .svd = svd,
                                            .svdvals = svdvals,
                                            .ldl_work = ldl_work,
                                            .qr_work = qr_work,
                                            .eigh_work = eigh_work,
                                            .svd_work = svd_work,
                                            .svdvals_work = svdvals_work};
  return kFactors;
}

}  // namespace flow::ops
