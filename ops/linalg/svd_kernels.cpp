// Singular values and pseudoinverses on the CPU, by plain loops and by LAPACK.
#include <algorithm>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_svd(KernelTable& table);

namespace {

// A copy of the matrix and the workspace.
template <class T, bool kPlain>
int64_t scratch_of_svd(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  const auto size = kPlain ? plain_factors().svd_work : lapack_factors<T>()->svd_work;
  const FactorWork work = size(state.rows, state.columns);
  return (state.rows * state.columns + work.elements) * element +
         work.ints * static_cast<int64_t>(sizeof(int32_t));
}

// The factors too, which come first.
template <class T, bool kPlain>
int64_t scratch_of_pinv(const KernelQuery& query, const MatrixState& state, int64_t element) {
  const int64_t k = std::min(state.rows, state.columns);
  return k * (state.rows + state.columns + 1) * element +
         scratch_of_svd<T, kPlain>(query, state, element);
}

template <class T>
struct SvdTarget {
  T* u;
  T* s;
  T* vh;
};

template <class T, bool kPlain>
void decompose(const KernelContext& ctx, const char* op, int64_t i, const T* x,
               const SvdTarget<T>& to, T* scratch) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t m = state.rows, n = state.columns;
  const Factors<T>& own = factors<T, kPlain>();
  check_finite_matrix(ctx, op, i, m * n, x);
  std::copy_n(x, m * n, scratch);
  T* const work = scratch + m * n;
  auto* const ints = reinterpret_cast<int32_t*>(work + own.svd_work(m, n).elements);
  if (std::min(m, n) > 0 && own.svd(m, n, scratch, to.u, to.s, to.vh, work, ints) != 0)
    refuse_matrix(ctx, op, i, "has singular values that did not converge; scale it");
}

template <class T, bool kPlain>
int64_t scratch_of_svdvals(const KernelQuery& /*query*/, const MatrixState& state,
                           int64_t element) {
  const auto size = kPlain ? plain_factors().svdvals_work : lapack_factors<T>()->svdvals_work;
  const FactorWork work = size(state.rows, state.columns);
  return (state.rows * state.columns + work.elements) * element +
         work.ints * static_cast<int64_t>(sizeof(int32_t));
}

template <class T, bool kPlain>
void run_svdvals(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t m = state.rows, n = state.columns, k = std::min(m, n);
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> s(ctx, 0);
  const Factors<T>& own = factors<T, kPlain>();
  for_each_matrix(ctx, 4 * m * n * k, [&](int64_t i, std::byte* scratch) {
    T* const a = reinterpret_cast<T*>(scratch);
    check_finite_matrix(ctx, "svdvals", i, m * n, x.data() + i * m * n);
    std::copy_n(x.data() + i * m * n, m * n, a);
    T* const work = a + m * n;
    auto* const ints = reinterpret_cast<int32_t*>(work + own.svdvals_work(m, n).elements);
    if (k > 0 && own.svdvals(m, n, a, s.data() + i * k, work, ints) != 0)
      refuse_matrix(ctx, "svdvals", i, "has singular values that did not converge; scale it");
  });
  s.finish(ctx);
}

template <class T, bool kPlain>
void run_svd(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t m = state.rows, n = state.columns, k = std::min(m, n);
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> u(ctx, 0), s(ctx, 1), vh(ctx, 2);
  for_each_matrix(ctx, 12 * m * n * k, [&](int64_t i, std::byte* scratch) {
    const SvdTarget<T> to{u.data() + i * m * k, s.data() + i * k, vh.data() + i * k * n};
    decompose<T, kPlain>(ctx, "svd", i, x.data() + i * m * n, to, reinterpret_cast<T*>(scratch));
    for (int64_t column = 0; column < k; ++column) {
      if (!turns_sign(to.u + column, m, k)) continue;
      for (int64_t row = 0; row < m; ++row)
        to.u[row * k + column] = -to.u[row * k + column];
      for (int64_t j = 0; j < n; ++j)
        to.vh[column * n + j] = -to.vh[column * n + j];
    }
  });
  u.finish(ctx);
  s.finish(ctx);
  vh.finish(ctx);
}

template <class T, bool kPlain>
void run_pinv(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const auto& attrs = ctx.attrs_as<PinvAttrs>();
  const int64_t m = state.rows, n = state.columns, k = std::min(m, n);
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  for_each_matrix(ctx, 12 * m * n * k, [&](int64_t i, std::byte* scratch) {
    T* const u = reinterpret_cast<T*>(scratch);
    const SvdTarget<T> to{u, u + m * k, u + m * k + k};
    decompose<T, kPlain>(ctx, "pinv", i, x.data() + i * m * n, to, to.vh + k * n);
    const T largest = k > 0 ? to.s[0] : T{0};
    const T limit = std::max(static_cast<T>(attrs.atol), static_cast<T>(attrs.rtol) * largest);
    for (int64_t j = 0; j < k; ++j) {
      const T factor = to.s[j] > limit ? 1 / to.s[j] : T{0};
      for (int64_t row = 0; row < m; ++row)
        to.u[row * k + j] *= factor;
    }
    factors<T, kPlain>().multiply(true, true, n, m, k, to.vh, to.u, y.data() + i * m * n);
  });
  y.finish(ctx);
}

}  // namespace

void register_svd(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  table.add(kSvd, kCpu,
            {"reference", select_plain<run_svd<double, true>, scratch_of_svd<double, true>>});
  table.add(kPinv, kCpu,
            {"reference", select_plain<run_pinv<double, true>, scratch_of_pinv<double, true>>});
  table.add(
      kSvdvals, kCpu,
      {"reference", select_plain<run_svdvals<double, true>, scratch_of_svdvals<double, true>>});
  if (!is_openblas_built_in()) return;
  table.add(kSvdvals, kCpu,
            {"lapack", select_lapack<run_svdvals<float, false>, run_svdvals<double, false>,
                                     scratch_of_svdvals<double, false>>});
  table.add(kSvd, kCpu,
            {"lapack", select_lapack<run_svd<float, false>, run_svd<double, false>,
                                     scratch_of_svd<double, false>>});
  table.add(kPinv, kCpu,
            {"lapack", select_lapack<run_pinv<float, false>, run_pinv<double, false>,
                                     scratch_of_pinv<double, false>>});
}

}  // namespace flow::ops
