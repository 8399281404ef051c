#include "ops/linalg/ldl.h"

#include <array>
#include <utility>

#include "core/dispatch.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/named_errors.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_ldl(InferContext& ctx) {
  check_square(ctx, 0);
  const Shape& shape = ctx.input(0).shape;
  ctx.add_output_like(0);
  ctx.add_output(leading_dims(shape, 1), DType::kInt32);
  ctx.add_output(leading_dims(shape, 2), DType::kInt32);
}

void sbp_ldl(SbpContext& ctx) {
  batch_sbp(ctx);
}

Cost cost_ldl(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = static_cast<double>(shape.numel()) *
                   static_cast<double>(size_from_end(shape, 0)) / 3};
}

[[noreturn]] void refuse_gradient(const GradContext& ctx, const char* input) {
  throw Unsupported(str("[", ctx.op_name(), "] the derivative by ", input,
                        " is not implemented; detach that input, or use lu_factor"));
}

void grad_ldl(GradContext& ctx) {
  if (ctx.dy().defined()) refuse_gradient(ctx, "the matrix");
}

void infer_ldl_solve(InferContext& ctx) {
  check_square(ctx, 0);
  check_right_side(ctx);
  const TensorMeta& pivots = ctx.input(2);
  ctx.check(pivots.dtype == DType::kInt32 && pivots.shape == leading_dims(ctx.input(0).shape, 1),
            "takes int32 pivots, one for each row of LD, as ldl_factor gives them");
  ctx.add_output_like(1);
}

// As system_sbp.
void sbp_ldl_solve(SbpContext& ctx) {
  batch_sbp(ctx);
  const int64_t columns = ctx.input(1).dim() - 1;
  for (const Sbp sides : {sbp::split(columns), sbp::partial_sum})
    ctx.add({sbp::broadcast, sides, sbp::broadcast}, {sides});
}

// db = a^-1 dx, as a is symmetric
void grad_ldl_solve(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  if (ctx.needs(0)) refuse_gradient(ctx, "LD");
  const Tensor factor = ctx.input(0), pivots = ctx.input(2);
  ctx.set(1, dispatch(kLdlSolve, {&factor, &ctx.dy(), &pivots}, Site::here()));
}

Cost cost_ldl_solve(const SbpContext& ctx) {
  return {.flops = 2 * static_cast<double>(ctx.input(1).numel) *
                   static_cast<double>(size_from_end(ctx.input(0).shape, 0))};
}

}  // namespace

const OpDef kLdlFactor{.name = "ldl_factor",
                       .num_outputs = 3,
                       .attrs = attrs_def<SingularAttrs>(),
                       .infer = infer_ldl,
                       .sbp = sbp_ldl,
                       .grad = grad_ldl,
                       .cost = cost_ldl,
                       .autocast = AutocastRule::kFloat32};

const OpDef kLdlSolve{.name = "ldl_solve",
                      .num_inputs = 3,
                      .infer = infer_ldl_solve,
                      .sbp = sbp_ldl_solve,
                      .grad = grad_ldl_solve,
                      .cost = cost_ldl_solve,
                      .saved_inputs = 0b101,
                      .autocast = AutocastRule::kFloat32};

void register_ldl(OpTable& table);

void register_ldl(OpTable& table) {
  table.add(kLdlFactor);
  table.add(kLdlSolve);
}

}  // namespace ops

namespace linalg {

namespace {

LdlFactorEx factorise(const TensorArg& x, bool refuses_singular) {
  std::array<Tensor, 3> outputs = dispatch_multi<3>(ops::kLdlFactor, {&x.tensor()},
                                                    ops::SingularAttrs{refuses_singular}, x.site());
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

}  // namespace

LdlFactor ldl_factor(const TensorArg& x) {
  return ops::located(x.site(), [&]() -> LdlFactor {
    LdlFactorEx parts = factorise(x, true);
    return {std::move(parts.LD), std::move(parts.pivots)};
  });
}

LdlFactorEx ldl_factor_ex(const TensorArg& x, const ExOptions& options) {
  return ops::named("ldl_factor_ex", x.site(),
                    [&]() -> LdlFactorEx { return factorise(x, options.check_errors); });
}

Tensor ldl_solve(const TensorArg& LD, const TensorArg& pivots, const TensorArg& B) {
  return ops::named("ldl_solve", LD.site(), [&]() -> Tensor {
    const Site site = LD.site();
    if (LD->dim() < 2 || B->dim() < 2 || pivots->shape() != ops::leading_dims(LD->shape(), 1)) {
      throw InvalidArgument(str("[ldl_solve] takes LD (…, n, n), pivots (…, n) and B (…, n, k); "
                                "received ",
                                LD->meta(), ", ", pivots->meta(), ", ", B->meta()),
                            site);
    }
    const Shape batch = broadcast_shapes(ops::leading_dims(LD->shape(), 2),
                                         ops::leading_dims(B->shape(), 2), "ldl_solve");
    Shape all_pivots = batch;
    all_pivots.push_back(LD->size(-1));
    const Tensor factor = ops::with_batch(LD, batch), sides = ops::with_batch(B, batch);
    const Tensor swaps = expand(pivots, all_pivots);
    return dispatch(ops::kLdlSolve, {&factor, &sides, &swaps}, site);
  });
}

}  // namespace linalg

}  // namespace flow
