// The Cholesky factorisation on the CPU, by plain loops and by LAPACK.
#include <algorithm>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_cholesky(KernelTable& table);

namespace {

// Stores the lower triangle of the symmetric part of a, and zeros above it.
template <class T>
void symmetric_lower(const T* a, int64_t n, T* lower) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      lower[i * n + j] = (a[i * n + j] + a[j * n + i]) / 2;
    std::fill(lower + i * n + i + 1, lower + (i + 1) * n, T{0});
  }
}

template <class T, bool kPlain>
void run_cholesky(const KernelContext& ctx) {
  const int64_t n = ctx.state_as<MatrixState>().rows;
  const ContiguousInput<T> a(ctx, 0);
  const ContiguousOutput<T> lower(ctx, 0);
  int32_t* const info = info_of(ctx);
  for_each_matrix(ctx, n * n * n, [&](int64_t i, std::byte* /*scratch*/) {
    T* const own = lower.data() + i * n * n;
    symmetric_lower(a.data() + i * n * n, n, own);
    const int64_t order = factors<T, kPlain>().cholesky(n, own);
    if (info != nullptr) return report(info, i, order, n * n, own);
    if (order == 0) return;
    refuse_matrix(ctx, "cholesky", i,
                  str("is not positive-definite: its leading minor of order ", order,
                      " is not positive; check how it was computed, or add a small multiple of the "
                      "identity"));
  });
  lower.finish(ctx);
}

}  // namespace

void register_cholesky(KernelTable& table) {
  for (const OpDef* op : {&kCholesky, &kCholeskyEx}) {
    table.add(*op, DeviceType::kCpu, {"reference", select_plain<run_cholesky<double, true>>});
    if (!is_openblas_built_in()) continue;
    table.add(*op, DeviceType::kCpu,
              {"lapack", select_lapack<run_cholesky<float, false>, run_cholesky<double, false>>});
  }
}

}  // namespace flow::ops
