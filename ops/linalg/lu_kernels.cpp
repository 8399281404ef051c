// LU factorisations and linear systems on the CPU, by plain loops and by LAPACK.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_lu(KernelTable& table);

namespace {

int64_t one_matrix(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  return state.rows * state.columns * element;
}

int64_t matrix_and_pivots(const KernelQuery& query, const MatrixState& state, int64_t element) {
  return one_matrix(query, state, element) + state.rows * static_cast<int64_t>(sizeof(int32_t));
}

// The number, from 1, of the first zero among elements `step` apart, or 0.
template <class T>
int64_t first_zero(int64_t count, int64_t step, const T* diagonal) {
  for (int64_t k = 0; k < count; ++k)
    if (diagonal[k * step] == 0) return k + 1;
  return 0;
}

template <class T>
void refuse_zero_pivot(const KernelContext& ctx, const char* op, int64_t matrix, int64_t count,
                       int64_t step, const T* diagonal) {
  const int64_t zero = first_zero(count, step, diagonal);
  if (zero == 0) return;
  refuse_matrix(ctx, op, matrix,
                str("is singular: element ", zero - 1, " of the diagonal of its factor U is zero"));
}

template <class T, bool kPlain>
void run_lu(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t m = state.rows, n = state.columns, k = std::min(m, n);
  const ContiguousInput<T> a(ctx, 0);
  const ContiguousOutput<T> lu(ctx, 0);
  int32_t* const pivots = ctx.out(1).as<int32_t>();
  for_each_matrix(ctx, m * n * k, [&](int64_t i, std::byte* scratch) {
    const T* const own = a.data() + i * m * n;
    T* const columns = reinterpret_cast<T*>(scratch);
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column)
        columns[column * m + row] = own[row * n + column];
    }
    factors<T, kPlain>().lu_of_transpose(m, n, columns, pivots + i * k);
    if (ctx.attrs_as<SingularAttrs>().refuses_singular)
      refuse_zero_pivot(ctx, "lu_factor", i, k, m + 1, columns);
    T* const target = lu.data() + i * m * n;
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column)
        target[row * n + column] = columns[column * m + row];
    }
  });
  lu.finish(ctx);
}

// With a^T = P L U: x = P (L^T)^-1 (U^T)^-1 b, so that neither a nor b is transposed.
template <class T, bool kPlain>
void run_solve(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t n = state.rows, sides = state.sides;
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<T> x(ctx, 0);
  int32_t* const info = info_of(ctx);
  for_each_matrix(ctx, n * n * (n + sides), [&](int64_t i, std::byte* scratch) {
    T* const lu = reinterpret_cast<T*>(scratch);
    auto* const pivots = reinterpret_cast<int32_t*>(lu + n * n);
    std::copy_n(a.data() + i * n * n, n * n, lu);
    factors<T, kPlain>().lu_of_transpose(n, n, lu, pivots);
    T* const own = x.data() + i * n * sides;
    if (info != nullptr) {
      report(info, i, first_zero(n, n + 1, lu), n * sides, own);
      if (info[i] != 0) return;
    } else {
      refuse_zero_pivot(ctx, "solve", i, n, n + 1, lu);
    }
    std::copy_n(b.data() + i * n * sides, n * sides, own);
    factors<T, kPlain>().solve_triangle({.upper = false}, n, sides, lu, own);
    factors<T, kPlain>().solve_triangle({.upper = true, .unit = true}, n, sides, lu, own);
    for (int64_t k = n; k-- > 0;) {
      const int64_t other = pivots[k] - 1;
      if (other != k) std::swap_ranges(own + k * sides, own + (k + 1) * sides, own + other * sides);
    }
  });
  x.finish(ctx);
}

template <class T>
void swap_rows(const KernelContext& ctx) {
  const TensorView& pivots = ctx.in(0);
  const int64_t steps = pivots.shape().back(), rows = ctx.attrs_as<PermutationAttrs>().rows;
  const int64_t stride = pivots.strides().back();
  int64_t* const target = ctx.out(0).as<int64_t>();
  const int64_t count = rows == 0 ? 0 : ctx.out(0).numel() / rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = line_offset(pivots, i);
    int64_t* const own = target + i * rows;
    std::iota(own, own + rows, int64_t{0});
    for (int64_t k = 0; k < steps; ++k) {
      const auto pivot = static_cast<int64_t>(pivots.as<T>()[offset + k * stride]);
      if (pivot < 1 || pivot > rows || k >= rows) {
        throw InvalidArgument(
            str("[lu_permutation] pivot ", pivot, " of step ", k, " is not one of the rows 1 to ",
                rows, "; give the pivots of lu_factor"),
            ctx.site);
      }
      std::swap(own[k], own[pivot - 1]);
    }
  }
}

void run_permutation(const KernelContext& ctx) {
  if (ctx.in(0).meta->dtype == DType::kInt64) return swap_rows<int64_t>(ctx);
  swap_rows<int32_t>(ctx);
}

KernelChoice select_permutation(const KernelQuery& query) {
  return parts_fit(query) ? KernelChoice{run_permutation} : KernelChoice{};
}

}  // namespace

void register_lu(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  table.add(kLuFactor, kCpu, {"reference", select_plain<run_lu<double, true>, one_matrix>});
  for (const OpDef* op : {&kSolve, &kSolveEx})
    table.add(*op, kCpu, {"reference", select_plain<run_solve<double, true>, matrix_and_pivots>});
  table.add(kLuPermutation, kCpu, {"reference", select_permutation});
  if (!is_openblas_built_in()) return;
  table.add(kLuFactor, kCpu,
            {"lapack", select_lapack<run_lu<float, false>, run_lu<double, false>, one_matrix>});
  for (const OpDef* op : {&kSolve, &kSolveEx}) {
    table.add(
        *op, kCpu,
        {"lapack",
         select_lapack<run_solve<float, false>, run_solve<double, false>, matrix_and_pivots>});
  }
}

}  // namespace flow::ops
