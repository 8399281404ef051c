#include "ops/linalg/eigh.h"

#include <array>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
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

void infer_eigvalsh(InferContext& ctx) {
  check_square(ctx, 0);
  ctx.add_output(leading_dims(ctx.input(0).shape, 1), ctx.input(0).dtype);
}

// dx = V diag(dw) V^T with the vectors of x, which backward computes.
void grad_eigvalsh(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  std::array<Tensor, 2> parts;
  const Tensor* const inputs[] = {&x};
  Call call{kEigh, inputs, nullptr, Site::here()};
  dispatch(call, parts.data());
  ctx.set(0, matmul(mul(parts[1], unsqueeze(ctx.dy(), -2)), transposed(parts[1])));
}

Cost cost_eigvalsh(const SbpContext& ctx) {
  return {.flops = cost_eigh(ctx).flops / 4};
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

const OpDef kEigvalsh{.name = "eigvalsh",
                      .infer = infer_eigvalsh,
                      .sbp = sbp_eigh,
                      .grad = grad_eigvalsh,
                      .cost = cost_eigvalsh,
                      .saved_inputs = 0b1,
                      .autocast = AutocastRule::kFloat32};

void register_eigh(OpTable& table);

void register_eigh(OpTable& table) {
  table.add(kEigh);
  table.add(kEigvalsh);
}

}  // namespace ops

namespace linalg {

namespace {

// The symmetric matrix of which x holds the triangle that is named, or x.
Tensor symmetric(const TensorArg& x, const EighOptions& options, const char* function) {
  if (!options.UPLO) return x;
  if (*options.UPLO != "L" && *options.UPLO != "U") {
    throw InvalidArgument(str("[", function, "] UPLO is \"", *options.UPLO,
                              "\"; give \"L\" or \"U\", or leave it out"));
  }
  if (*options.UPLO == "L") return add(tril(x), ops::transposed(tril(x, -1)));
  return add(triu(x), ops::transposed(triu(x, 1)));
}

}  // namespace

Eigh eigh(const TensorArg& x, const EighOptions& options) {
  return ops::named("eigh", x.site(), [&]() -> Eigh {
    const Tensor whole = symmetric(x, options, "eigh");
    std::array<Tensor, 2> outputs;
    const Tensor* const inputs[] = {&whole};
    Call call{ops::kEigh, inputs, nullptr, x.site()};
    dispatch(call, outputs.data());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

Tensor eigvalsh(const TensorArg& x, const EighOptions& options) {
  return ops::named("eigvalsh", x.site(), [&]() -> Tensor {
    const Tensor whole = symmetric(x, options, "eigvalsh");
    return dispatch(ops::kEigvalsh, {&whole}, x.site());
  });
}

}  // namespace linalg

}  // namespace flow
