// LDL^T factorisations on the CPU, by plain loops and by LAPACK, and systems that they solve.
#include <algorithm>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_ldl(KernelTable& table);

namespace {

template <class T, bool kPlain>
int64_t matrix_and_work(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  const auto work = kPlain ? plain_factors().ldl_work : lapack_factors<T>()->ldl_work;
  return (state.rows * state.rows + work(state.rows).elements) * element;
}

int64_t one_line_of_pivots(const KernelQuery& /*query*/, const MatrixState& state,
                           int64_t /*element*/) {
  return state.rows * static_cast<int64_t>(sizeof(int32_t));
}

template <class T, bool kPlain>
void run_ldl(const KernelContext& ctx) {
  const int64_t n = ctx.state_as<MatrixState>().rows;
  const ContiguousInput<T> a(ctx, 0);
  const ContiguousOutput<T> ld(ctx, 0);
  int32_t* const pivots = ctx.out(1).as<int32_t>();
  int32_t* const info = ctx.out(2).as<int32_t>();
  for_each_matrix(ctx, n * n * n, [&](int64_t i, std::byte* scratch) {
    const T* const own = a.data() + i * n * n;
    T* const columns = reinterpret_cast<T*>(scratch);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t column = 0; column <= row; ++column)
        columns[column * n + row] = own[row * n + column];
    }
    const int64_t zero =
        factors<T, kPlain>().ldl_by_columns(n, columns, pivots + i * n, columns + n * n);
    if (zero != 0 && ctx.attrs_as<SingularAttrs>().refuses_singular) {
      refuse_matrix(
          ctx, "ldl_factor", i,
          str("is singular: element ", zero - 1, " of the diagonal of its factor D is zero"));
    }
    info[i] = static_cast<int32_t>(zero);
    T* const target = ld.data() + i * n * n;
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t column = 0; column < n; ++column)
        target[row * n + column] = column <= row ? columns[column * n + row] : T{0};
    }
  });
  ld.finish(ctx);
}

// Copies the pivots of a matrix. Throws InvalidArgument unless they are some that ldl_factor gives.
void read_pivots(const KernelContext& ctx, int64_t matrix, int64_t n, int32_t* pivots) {
  const TensorView& view = ctx.in(2);
  const int32_t* const given = view.as<int32_t>() + line_offset(view, matrix);
  for (int64_t k = 0; k < n; ++k)
    pivots[k] = given[k * view.strides().back()];
  for (int64_t k = 0; k < n; ++k) {
    const int64_t pivot = pivots[k];
    const bool is_pair = pivot < 0 && k + 1 < n && pivots[k + 1] == pivot;
    const int64_t row = pivot < 0 ? -pivot - 1 : pivot - 1;
    if (row >= n || row < k + (is_pair ? 1 : 0) || (pivot < 0 && !is_pair)) {
      refuse_matrix(ctx, "ldl_solve", matrix,
                    str("has the pivot ", pivot, " for row ", k,
                        ", which ldl_factor cannot give; "
                        "give its pivots"));
    }
    if (is_pair) ++k;
  }
}

// The rows of the right-hand sides of one system.
struct Sides {
  int64_t columns;
  double* x;

  double* row(int64_t i) const { return x + i * columns; }

  void swap(int64_t i, int64_t j) const {
    if (i != j) std::swap_ranges(row(i), row(i) + columns, row(j));
  }

  // Subtracts `factor` times row j from row i.
  void subtract(int64_t i, double factor, int64_t j) const {
    for (int64_t c = 0; c < columns; ++c)
      row(i)[c] -= factor * row(j)[c];
  }
};

// Replaces the sides b by (L D)^-1 P^T b, block by block.
void solve_lower(int64_t n, const double* ld, const int32_t* pivots, const Sides& sides) {
  for (int64_t k = 0; k < n; ++k) {
    const double head = ld[k * n + k];
    if (pivots[k] > 0) {
      sides.swap(k, pivots[k] - 1);
      for (int64_t i = k + 1; i < n; ++i)
        sides.subtract(i, ld[i * n + k], k);
      for (int64_t c = 0; c < sides.columns; ++c)
        sides.row(k)[c] /= head;
      continue;
    }
    sides.swap(k + 1, -pivots[k] - 1);
    for (int64_t i = k + 2; i < n; ++i) {
      sides.subtract(i, ld[i * n + k], k);
      sides.subtract(i, ld[i * n + k + 1], k + 1);
    }
    // The block is divided by its element outside the diagonal, which is the largest one.
    const double corner = ld[(k + 1) * n + k];
    const double first = head / corner, second = ld[(k + 1) * n + k + 1] / corner;
    const double determinant = first * second - 1;
    for (int64_t c = 0; c < sides.columns; ++c) {
      double& above = sides.row(k)[c];
      double& below = sides.row(k + 1)[c];
      const double a = above / corner, b = below / corner;
      above = (second * a - b) / determinant;
      below = (first * b - a) / determinant;
    }
    ++k;
  }
}

// Replaces the sides b by P L^-T b.
void solve_transposed(int64_t n, const double* ld, const int32_t* pivots, const Sides& sides) {
  for (int64_t k = n - 1; k >= 0; --k) {
    const bool is_pair = pivots[k] < 0;
    for (int64_t i = k + 1; i < n; ++i) {
      sides.subtract(k, ld[i * n + k], i);
      if (is_pair) sides.subtract(k - 1, ld[i * n + k - 1], i);
    }
    sides.swap(k, (is_pair ? -pivots[k] : pivots[k]) - 1);
    if (is_pair) --k;
  }
}

void run_ldl_solve(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t n = state.rows, sides = state.sides;
  const ContiguousInput<double> ld(ctx, 0), b(ctx, 1);
  const ContiguousOutput<double> x(ctx, 0);
  for_each_matrix(ctx, 2 * n * n * sides, [&](int64_t i, std::byte* scratch) {
    auto* const pivots = reinterpret_cast<int32_t*>(scratch);
    read_pivots(ctx, i, n, pivots);
    const Sides own{sides, x.data() + i * n * sides};
    std::copy_n(b.data() + i * n * sides, n * sides, own.x);
    solve_lower(n, ld.data() + i * n * n, pivots, own);
    solve_transposed(n, ld.data() + i * n * n, pivots, own);
  });
  x.finish(ctx);
}

}  // namespace

void register_ldl(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  table.add(kLdlFactor, kCpu,
            {"reference", select_plain<run_ldl<double, true>, matrix_and_work<double, true>>});
  table.add(kLdlSolve, kCpu, {"reference", select_plain<run_ldl_solve, one_line_of_pivots>});
  if (!is_openblas_built_in()) return;
  table.add(kLdlFactor, kCpu,
            {"lapack", select_lapack<run_ldl<float, false>, run_ldl<double, false>,
                                     matrix_and_work<double, false>>});
}

}  // namespace flow::ops
