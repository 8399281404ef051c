#include "ops/linalg/eigh.h"

#include <array>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_eigh(InferContext& ctx) {
  check_square(ctx, 0);
  ctx.add_output(leading_dims(ctx.input(0).shape, 1), ctx.input(0).dtype);
  ctx.add_output_like(0);
}

void sbp_eigh(SbpContext& ctx) {
  batch_sbp(ctx);
}

// dx = V (diag(dw) + F * (V^T dV)) V^T with F[i][j] = 1 / (w[j] - w[i]) and 0 on the diagonal
// (Giles 2008), of which the symmetric part is taken, as the op does with x.
void grad_eigh(GradContext& ctx) {
  const Tensor& dw = ctx.dy(0);
  const Tensor& dv = ctx.dy(1);
  if (!dw.defined() && !dv.defined()) return;
  const Tensor v = ctx.output(1);
  Tensor inner;
  if (dw.defined()) inner = diag_embed(dw);
  if (dv.defined()) {
    const Tensor w = ctx.output(0);
    const Tensor one = identity_like(v, v.size(-1), v.size(-1));
    const Tensor gaps = add(sub(unsqueeze(w, -2), unsqueeze(w, -1)), one);
    const Tensor turn = div(mul(matmul(transposed(v), dv), 1 - one), gaps);
    inner = inner.defined() ? add(inner, turn) : turn;
  }
  const Tensor dx = matmul(matmul(v, inner), transposed(v));
  ctx.set(0, dv.defined() ? mul(add(dx, transposed(dx)), 0.5) : dx);
}

Cost cost_eigh(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = 9 * static_cast<double>(shape.numel()) *
                   static_cast<double>(size_from_end(shape, 0))};
}

}  // namespace

const OpDef kEigh{.name = "eigh",
                  .num_outputs = 2,
                  .infer = infer_eigh,
                  .sbp = sbp_eigh,
                  .grad = grad_eigh,
                  .cost = cost_eigh,
                  .saved_outputs = 0b11,
                  .autocast = AutocastRule::kFloat32};

void register_eigh(OpTable& table);

void register_eigh(OpTable& table) {
  table.add(kEigh);
}

}  // namespace ops

namespace linalg {

Eigh eigh(const TensorArg& x) {
  return ops::located(x.site(), [&]() -> Eigh {
    std::array<Tensor, 2> outputs;
    const Tensor* const inputs[] = {&x.tensor()};
    Call call{ops::kEigh, inputs, nullptr, x.site()};
    dispatch(call, outputs.data());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

Tensor eigvalsh(const TensorArg& x) {
  return ops::named("eigvalsh", x.site(), [&]() -> Tensor { return eigh(x).eigenvalues; });
}

}  // namespace linalg

}  // namespace flow
