#include "ops/linalg/cholesky.h"

#include <array>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linalg/triangular.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_cholesky(InferContext& ctx) {
  check_square(ctx, 0);
  ctx.add_output_like(0);
}

void sbp_cholesky(SbpContext& ctx) {
  batch_sbp(ctx);
}

// With S = lower half of L^T dL: da = sym(L^-T S L^-1)  (Murray 2016, "Differentiation of the
// Cholesky decomposition").
void grad_cholesky(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor factor = ctx.output();
  const TriangularAttrs attrs{.upper = false, .transposed = true};
  const auto divide = [&](const Tensor& x) {  // L^-T x
    return dispatch(kSolveTriangular, {&factor, &x}, attrs, Site::here());
  };
  const Tensor inner = lower_half(matmul(transposed(factor), tril(ctx.dy())));
  const Tensor dx = divide(transposed(divide(inner)));
  ctx.set(0, mul(add(dx, transposed(dx)), 0.5));
}

void infer_cholesky_ex(InferContext& ctx) {
  infer_cholesky(ctx);
  ctx.add_output(leading_dims(ctx.input(0).shape, 2), DType::kInt32);
}

Cost cost_cholesky(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = static_cast<double>(shape.numel()) *
                   static_cast<double>(size_from_end(shape, 0)) / 3};
}

}  // namespace

const OpDef kCholesky{.name = "cholesky",
                      .infer = infer_cholesky,
                      .sbp = sbp_cholesky,
                      .grad = grad_cholesky,
                      .cost = cost_cholesky,
                      .saved_outputs = 0b1,
                      .autocast = AutocastRule::kFloat32};

const OpDef kCholeskyEx{.name = "cholesky_ex",
                        .num_outputs = 2,
                        .infer = infer_cholesky_ex,
                        .sbp = sbp_cholesky,
                        .grad = grad_cholesky,
                        .cost = cost_cholesky,
                        .saved_outputs = 0b1,
                        .autocast = AutocastRule::kFloat32};

void register_cholesky(OpTable& table);

void register_cholesky(OpTable& table) {
  table.add(kCholesky);
  table.add(kCholeskyEx);
}

}  // namespace ops

namespace linalg {

Tensor cholesky(const TensorArg& x, const CholeskyOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    const Tensor lower = dispatch(ops::kCholesky, {&x.tensor()}, x.site());
    return options.upper ? ops::transposed(lower) : lower;
  });
}

CholeskyEx cholesky_ex(const TensorArg& x, const CholeskyExOptions& options) {
  return ops::named("cholesky_ex", x.site(), [&]() -> CholeskyEx {
    if (options.check_errors) {
      const Tensor factor = cholesky(x, {.upper = options.upper});
      return {factor, new_zeros(x, ops::leading_dims(x->shape(), 2), {.dtype = DType::kInt32})};
    }
    std::array<Tensor, 2> outputs;
    const Tensor* const inputs[] = {&x.tensor()};
    Call call{ops::kCholeskyEx, inputs, nullptr, x.site()};
    dispatch(call, outputs.data());
    return {options.upper ? ops::transposed(outputs[0]) : outputs[0], outputs[1]};
  });
}

Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, const CholeskyOptions& options) {
  return ops::named("cholesky_solve", B.site(), [&]() -> Tensor {
    const Site site = B.site();
    const Tensor other = transpose(L, -1, -2);
    const Tensor& lower = options.upper ? other : L.tensor();
    const Tensor& upper = options.upper ? L.tensor() : other;
    const Tensor half = solve_triangular({lower, site}, B, false);
    return solve_triangular({upper, site}, {half, site}, true);
  });
}

Tensor cholesky_inverse(const TensorArg& L, const CholeskyOptions& options) {
  return ops::named("cholesky_inverse", L.site(), [&]() -> Tensor {
    const int64_t n = L->size(-1);
    return cholesky_solve({ops::identity_like(L, n, n), L.site()}, L, options);
  });
}

}  // namespace linalg

Tensor LinalgMethods::cholesky(Site site) const {
  return linalg::cholesky({self(), site});
}

Tensor LinalgMethods::cholesky(const linalg::CholeskyOptions& options, Site site) const {
  return linalg::cholesky({self(), site}, options);
}

Tensor LinalgMethods::cholesky_inverse(Site site) const {
  return linalg::cholesky_inverse({self(), site});
}

Tensor LinalgMethods::cholesky_inverse(const linalg::CholeskyOptions& options, Site site) const {
  return linalg::cholesky_inverse({self(), site}, options);
}

Tensor LinalgMethods::cholesky_solve(const TensorArg& factor) const {
  return linalg::cholesky_solve({self(), factor.site()}, factor);
}

Tensor LinalgMethods::cholesky_solve(const TensorArg& factor,
                                     const linalg::CholeskyOptions& options) const {
  return linalg::cholesky_solve({self(), factor.site()}, factor, options);
}

}  // namespace flow
