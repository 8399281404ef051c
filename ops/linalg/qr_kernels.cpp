// The QR factorisation on the CPU, by plain loops and by LAPACK.
#include <algorithm>

#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_qr(KernelTable& table);

namespace {

QrSizes sizes_of(const MatrixState& state, bool complete) {
  const int64_t k = complete ? state.rows : std::min(state.rows, state.columns);
  return {state.rows, state.columns, k};
}

template <class T, bool kPlain>
int64_t scratch_of_qr(const KernelQuery& query, const MatrixState& state, int64_t element) {
  const QrSizes sizes = sizes_of(state, query.attrs_as<QrAttrs>().complete);
  const auto work = kPlain ? plain_factors().qr_work : lapack_factors<T>()->qr_work;
  return (sizes.rows * sizes.stride() + work(sizes).elements) * element;
}

template <class T, bool kPlain>
void run_qr(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const QrSizes sizes = sizes_of(state, ctx.attrs_as<QrAttrs>().complete);
  const int64_t m = sizes.rows, n = sizes.columns, k = sizes.q_columns, stride = sizes.stride();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> q(ctx, 0), r(ctx, 1);
  for_each_matrix(ctx, 2 * m * n * (k + 1), [&](int64_t i, std::byte* scratch) {
    T* const a = reinterpret_cast<T*>(scratch);
    for (int64_t row = 0; row < m; ++row)
      std::copy_n(x.data() + (i * m + row) * n, n, a + row * stride);
    factors<T, kPlain>().qr(sizes, a, r.data() + i * k * n, a + m * stride);
    for (int64_t row = 0; row < m; ++row)
      std::copy_n(a + row * stride, k, q.data() + (i * m + row) * k);
  });
  q.finish(ctx);
  r.finish(ctx);
}

template <class T, bool kPlain>
int64_t scratch_of_geqrf(const KernelQuery& /*query*/, const MatrixState& state, int64_t element) {
  const auto work = kPlain ? plain_factors().qr_work : lapack_factors<T>()->qr_work;
  return work({state.rows, state.columns, 0}).elements * element;
}

template <class T, bool kPlain>
void run_geqrf(const KernelContext& ctx) {
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t m = state.rows, n = state.columns, k = std::min(m, n);
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> a(ctx, 0), tau(ctx, 1);
  for_each_matrix(ctx, 2 * m * n * (k + 1), [&](int64_t i, std::byte* scratch) {
    T* const own = a.data() + i * m * n;
    std::copy_n(x.data() + i * m * n, m * n, own);
    factors<T, kPlain>().geqrf(m, n, own, tau.data() + i * k, reinterpret_cast<T*>(scratch));
  });
  a.finish(ctx);
  tau.finish(ctx);
}

}  // namespace

void register_qr(KernelTable& table) {
  table.add(kQr, DeviceType::kCpu,
            {"reference", select_plain<run_qr<double, true>, scratch_of_qr<double, true>>});
  table.add(kGeqrf, DeviceType::kCpu,
            {"reference", select_plain<run_geqrf<double, true>, scratch_of_geqrf<double, true>>});
  if (!is_openblas_built_in()) return;
  table.add(kGeqrf, DeviceType::kCpu,
            {"lapack", select_lapack<run_geqrf<float, false>, run_geqrf<double, false>,
                                     scratch_of_geqrf<double, false>>});
  table.add(
      kQr, DeviceType::kCpu,
      {"lapack",
       select_lapack<run_qr<float, false>, run_qr<double, false>, scratch_of_qr<double, false>>});
}

}  // namespace flow::ops
