// Eigenvalues of symmetric matrices on the CPU, by plain loops and by LAPACK.
#include <algorithm>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_eigh(KernelTable& table);

namespace {

template <class T, bool kPlain>
int64_t scratch_of_eigh(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  const int64_t n = state.rows;
  const auto size = kPlain ? plain_factors().eigh_work : lapack_factors<T>()->eigh_work;
  const FactorWork work = size(n);
  return (n * n + work.elements) * element + work.ints * static_cast<int64_t>(sizeof(int32_t));
}

// Stores the symmetric part of x (n, n).
template <class T>
void symmetric_part(const T* x, int64_t n, T* a) {
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column)
      a[row * n + column] = (x[row * n + column] + x[column * n + row]) / 2;
  }
}

// Calls solve(a, work, ints) with the symmetric part of matrix `i`, which it may overwrite, and
// returns a. Raises for the op if a number is not finite or solve() does not give 0.
template <class T, class Solve>
T* solve_symmetric(const KernelContext& ctx, const char* op, const Factors<T>& own, int64_t n,
                   int64_t i, const T* source, std::byte* scratch, const Solve& solve) {
  check_finite_matrix(ctx, op, i, n * n, source);
  T* const a = reinterpret_cast<T*>(scratch);
  T* const work = a + n * n;
  symmetric_part(source, n, a);
  auto* const ints = reinterpret_cast<int32_t*>(work + own.eigh_work(n).elements);
  if (solve(a, work, ints) != 0)
    refuse_matrix(ctx, op, i, "has eigenvalues that did not converge; scale it");
  return a;
}

template <class T, bool kPlain>
void run_eigvalsh(const KernelContext& ctx) {
  const int64_t n = ctx.state_as<MatrixState>().rows;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> values(ctx, 0);
  const Factors<T>& own = factors<T, kPlain>();
  for_each_matrix(ctx, 2 * n * n * n, [&](int64_t i, std::byte* scratch) {
    solve_symmetric(ctx, "eigvalsh", own, n, i, x.data() + i * n * n, scratch,
                    [&](T* matrix, T* work, int32_t* ints) {
                      return own.eigvalsh(n, matrix, values.data() + i * n, work, ints);
                    });
  });
  values.finish(ctx);
}

template <class T, bool kPlain>
void run_eigh(const KernelContext& ctx) {
  const int64_t n = ctx.state_as<MatrixState>().rows;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> values(ctx, 0), vectors(ctx, 1);
  const Factors<T>& own = factors<T, kPlain>();
  for_each_matrix(ctx, 9 * n * n * n, [&](int64_t i, std::byte* scratch) {
    T* const a = solve_symmetric(ctx, "eigh", own, n, i, x.data() + i * n * n, scratch,
                                 [&](T* matrix, T* work, int32_t* ints) {
                                   return own.eigh(n, matrix, values.data() + i * n, work, ints);
                                 });
    T* const target = vectors.data() + i * n * n;
    for (int64_t vector = 0; vector < n; ++vector) {
      const T sign = turns_sign(a + vector * n, n, 1) ? T{-1} : T{1};
      for (int64_t row = 0; row < n; ++row)
        target[row * n + vector] = sign * a[vector * n + row];
    }
  });
  values.finish(ctx);
  vectors.finish(ctx);
}

}  // namespace

void register_eigh(KernelTable& table) {
  table.add(kEigh, DeviceType::kCpu,
            {"reference", select_plain<run_eigh<double, true>, scratch_of_eigh<double, true>>});
  table.add(kEigvalsh, DeviceType::kCpu,
            {"reference", select_plain<run_eigvalsh<double, true>, scratch_of_eigh<double, true>>});
  if (!is_openblas_built_in()) return;
  table.add(kEigvalsh, DeviceType::kCpu,
            {"lapack", select_lapack<run_eigvalsh<float, false>, run_eigvalsh<double, false>,
                                     scratch_of_eigh<double, false>>});
  table.add(kEigh, DeviceType::kCpu,
            {"lapack", select_lapack<run_eigh<float, false>, run_eigh<double, false>,
                                     scratch_of_eigh<double, false>>});
}

}  // namespace flow::ops
