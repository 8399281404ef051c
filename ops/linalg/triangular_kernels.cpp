// Systems with a triangular matrix on the CPU, by plain loops and by BLAS.
#include <algorithm>

#include "core/error.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_loop.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

void register_triangular(KernelTable& table);

namespace {

template <class T, bool kPlain>
void run_triangular(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<TriangularAttrs>();
  const auto& state = ctx.state_as<MatrixState>();
  const int64_t n = state.rows;
  const int64_t size = n * state.sides;
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<T> x(ctx, 0);
  for_each_matrix(ctx, n * size, [&](int64_t i, std::byte* /*scratch*/) {
    const T* const own = a.data() + i * n * n;
    for (int64_t k = 0; !attrs.unitriangular && k < n; ++k) {
      if (own[k * n + k] != 0) continue;
      refuse_matrix(ctx, "solve_triangular", i,
                    str("is singular: element ", k, " of its diagonal is zero"));
    }
    std::copy_n(b.data() + i * size, size, x.data() + i * size);
    factors<T, kPlain>().solve_triangle({attrs.upper, attrs.transposed, attrs.unitriangular}, n,
                                        state.sides, own, x.data() + i * size);
  });
  x.finish(ctx);
}

}  // namespace

void register_triangular(KernelTable& table) {
  table.add(kSolveTriangular, DeviceType::kCpu,
            {"reference", select_plain<run_triangular<double, true>>});
  if (!is_openblas_built_in()) return;
  table.add(kSolveTriangular, DeviceType::kCpu,
            {"lapack", select_lapack<run_triangular<float, false>, run_triangular<double, false>>});
}

}  // namespace flow::ops
