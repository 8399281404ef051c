#include "ops/linalg/matrix_exp.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow {

namespace ops {

namespace {

void infer_exp(InferContext& ctx) {
  check_square(ctx, 0);
  ctx.add_output_like(0);
}

void sbp_exp(SbpContext& ctx) {
  batch_sbp(ctx);
}

// The gradient is the derivative of exp at x^T in the direction dy, which is the upper right block
// of exp([[x^T, dy], [0, x^T]])  (Mathias 1996; Al-Mohy, Higham 2009).
void grad_exp(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor turned = transposed(ctx.input(0));
  const int64_t n = turned.size(-1);
  const Tensor above = cat({turned, ctx.dy()}, -1);
  const Tensor below = cat({zeros_like(turned), turned}, -1);
  const Tensor both = cat({above, below}, -2);
  const Tensor all = dispatch(kMatrixExp, {&both}, Site::here());
  ctx.set(0, narrow(narrow(all, -2, 0, n), -1, n, n));
}

// Seven products; squarings depend on the values.
Cost cost_exp(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = 14 * static_cast<double>(shape.numel()) *
                   static_cast<double>(size_from_end(shape, 0))};
}

}  // namespace

const OpDef kMatrixExp{.name = "matrix_exp",
                       .infer = infer_exp,
                       .sbp = sbp_exp,
                       .grad = grad_exp,
                       .cost = cost_exp,
                       .saved_inputs = 0b1,
                       .autocast = AutocastRule::kFloat32};

void register_matrix_exp(OpTable& table);

void register_matrix_exp(OpTable& table) {
  table.add(kMatrixExp);
}

}  // namespace ops

namespace linalg {

Tensor matrix_exp(const TensorArg& x) {
  return ops::located(
      x.site(), [&]() -> Tensor { return dispatch(ops::kMatrixExp, {&x.tensor()}, x.site()); });
}

}  // namespace linalg

Tensor LinalgMethods::matrix_exp(Site site) const {
  return linalg::matrix_exp({self(), site});
}

}  // namespace flow
