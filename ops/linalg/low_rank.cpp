#include "ops/linalg/low_rank.h"

#include <algorithm>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/linalg/qr.h"
#include "ops/linalg/svd.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// The span of the columns of x.
Tensor basis(const Tensor& x, Site site) {
  return linalg::qr({x, site}).Q;
}

LowrankSvd svd_of(const char* name, const Tensor& a, int64_t q, int64_t niter, Site site) {
  if (!is_floating(a.dtype()) || a.dim() < 2) {
    throw InvalidArgument(
        str("[", name, "] takes matrices (…, m, n) of a floating dtype; received ", a.meta()),
        site);
  }
  if (q < 0 || niter < 0) {
    throw InvalidArgument(
        str("[", name, "] needs q >= 0 and niter >= 0; received ", q, " and ", niter), site);
  }
  const TensorOptions layout = ops::whole_like(a);
  const Tensor start = randn({a.size(-1), std::min({q, a.size(-2), a.size(-1)})}, layout, site);
  const Tensor mirrored = a.mT();
  const auto product = [site](const Tensor& x, const Tensor& y) {
    return matmul({x, site}, {y, site});
  };
  Tensor span = basis(product(a, start), site);
  for (int64_t i = 0; i < niter; ++i) {
    span = basis(product(mirrored, span), site);
    span = basis(product(a, span), site);
  }
  const linalg::Svd inner = linalg::svd({product(span.mT(), a), site}, {.full_matrices = false});
  return {product(span, inner.U), inner.S, inner.Vh.mT()};
}

}  // namespace

LowrankSvd svd_lowrank(const TensorArg& A, const SvdLowrankOptions& options) {
  return ops::named("svd_lowrank", A.site(), [&] {
    const Tensor a = options.M.defined() ? sub(A, {options.M, A.site()}) : A.tensor();
    return svd_of("svd_lowrank", a, options.q, options.niter, A.site());
  });
}

LowrankSvd pca_lowrank(const TensorArg& A, const PcaLowrankOptions& options) {
  return ops::named("pca_lowrank", A.site(), [&] {
    const Site site = A.site();
    const bool is_empty = A->numel() == 0;
    const Tensor a = options.center && A->dim() > 1 && !is_empty
                         ? sub(A, {mean(A, -2, {.keepdim = true}), site})
                         : A.tensor();
    return svd_of("pca_lowrank", a, options.q.value_or(6), options.niter, site);
  });
}

}  // namespace flow
