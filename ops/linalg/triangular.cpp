#include "ops/linalg/triangular.h"

#include "core/dispatch.h"
#include "ops/elementwise/unary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_triangular(InferContext& ctx) {
  check_square(ctx, 0);
  check_right_side(ctx);
  ctx.add_output_like(1);
}

// db = triangle(a)^-T dx,  d triangle(a) = -db x^T, of which the triangle is kept.
void grad_triangular(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<TriangularAttrs>();
  const Tensor a = ctx.input(0);
  TriangularAttrs turned = attrs;
  turned.transposed = !attrs.transposed;
  const Tensor db = dispatch(kSolveTriangular, {&a, &ctx.dy()}, turned, Site::here());
  if (ctx.needs(1)) ctx.set(1, db);
  if (!ctx.needs(0)) return;
  const Tensor x = ctx.output();
  const Tensor da = neg(attrs.transposed ? matmul(x, transposed(db)) : matmul(db, transposed(x)));
  const int64_t diagonal = attrs.unitriangular ? 1 : 0;
  ctx.set(0, attrs.upper ? triu(da, diagonal) : tril(da, -diagonal));
}

Cost cost_triangular(const SbpContext& ctx) {
  return {.flops = static_cast<double>(ctx.input(1).numel) *
                   static_cast<double>(size_from_end(ctx.input(0).shape, 0))};
}

}  // namespace

const OpDef kSolveTriangular{.name = "solve_triangular",
                             .num_inputs = 2,
                             .attrs = attrs_def<TriangularAttrs>(),
                             .infer = infer_triangular,
                             .sbp = system_sbp,
                             .grad = grad_triangular,
                             .cost = cost_triangular,
                             .saved_inputs = 0b1,
                             .saved_outputs = 0b1,
                             .autocast = AutocastRule::kFloat32};

void register_triangular(OpTable& table);

void register_triangular(OpTable& table) {
  table.add(kSolveTriangular);
}

}  // namespace ops

namespace linalg {

Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper,
                        const SolveTriangularOptions& options) {
  return ops::named("solve_triangular", A.site(), [&]() -> Tensor {
    const Site site = A.site();
    if (A->dim() < 2 || B->dim() < 2) {
      throw InvalidArgument(str("[solve_triangular] takes matrices of at least two dims; received ",
                                A->meta(), ", ", B->meta(), "; unsqueeze a vector"),
                            site);
    }
    const Shape batch = broadcast_shapes(ops::leading_dims(A->shape(), 2),
                                         ops::leading_dims(B->shape(), 2), "solve_triangular");
    const Tensor a = ops::with_batch(A, batch);
    // X A = B is A^T X^T = B^T.
    const Tensor own = options.left ? B.tensor() : ops::transposed(B);
    const Tensor b = ops::with_batch({own, site}, batch);
    const ops::TriangularAttrs attrs{upper, !options.left, options.unitriangular};
    const Tensor x = dispatch(ops::kSolveTriangular, {&a, &b}, attrs, site);
    return options.left ? x : ops::transposed(x);
  });
}

}  // namespace linalg

}  // namespace flow
