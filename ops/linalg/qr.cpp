#include "ops/linalg/qr.h"

#include <algorithm>
#include <array>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_qr(InferContext& ctx) {
  check_matrices(ctx, 0);
  const TensorMeta& x = ctx.input(0);
  const int64_t m = size_from_end(x.shape, 1), n = size_from_end(x.shape, 0);
  const int64_t k = ctx.attrs<QrAttrs>().complete ? m : std::min(m, n);
  const Shape batch = leading_dims(x.shape, 2);
  ctx.add_output(matrix_shape(batch, m, k), x.dtype);
  ctx.add_output(matrix_shape(batch, k, n), x.dtype);
}

void sbp_qr(SbpContext& ctx) {
  batch_sbp(ctx);
}

void infer_geqrf(InferContext& ctx) {
  check_matrices(ctx, 0);
  const TensorMeta& x = ctx.input(0);
  ctx.add_output_like(0);
  Shape tau = leading_dims(x.shape, 2);
  tau.push_back(std::min(size_from_end(x.shape, 0), size_from_end(x.shape, 1)));
  ctx.add_output(tau, x.dtype);
}

// With M = R dR^T - dQ^T Q and copyltu(M) = tril(M) + tril(M, -1)^T:
//   dx = (dQ + Q copyltu(M)) R^-T  (Walter, Lehmann, Lamour 2012; Liao et al. 2019).
// If x has more columns than rows, those on the right are Q R2, which adds to dQ.
void grad_qr(GradContext& ctx) {
  if (!ctx.dy(0).defined() && !ctx.dy(1).defined()) return;
  const Tensor q = ctx.output(0), r = ctx.output(1);
  const int64_t m = q.size(-2), k = q.size(-1), n = r.size(-1);
  if (k > n) {
    throw Unsupported(str("[qr] mode \"complete\" has no gradient for ", m, " by ", n,
                          " matrices: the last columns of Q are arbitrary; use mode \"reduced\""));
  }
  Tensor dq = ctx.dy(0).defined() ? ctx.dy(0) : zeros_like(q);
  const Tensor dr = ctx.dy(1).defined() ? ctx.dy(1) : zeros_like(r);
  const Tensor square = n > k ? narrow(r, -1, 0, k) : r;
  const Tensor dsquare = triu(n > k ? narrow(dr, -1, 0, k) : dr);
  Tensor right;  // the gradient of the columns on the right
  if (n > k) {
    const Tensor dr2 = narrow(dr, -1, k, n - k);
    right = matmul(q, dr2);
    // x2 = Q R2 exactly, so that Q^T x2 = R2.
    dq = add(dq, matmul(q, matmul(narrow(r, -1, k, n - k), transposed(dr2))));
  }
  const Tensor inner = sub(matmul(square, transposed(dsquare)), matmul(transposed(dq), q));
  const Tensor both = add(tril(inner), transposed(tril(inner, -1)));
  const Tensor sum = add(dq, matmul(q, both));
  const Tensor turned = transposed(sum);
  const Tensor dx = transposed(
      dispatch(kSolveTriangular, {&square, &turned}, TriangularAttrs{.upper = true}, Site::here()));
  ctx.set(0, n > k ? cat({dx, right}, -1) : dx);
}

Cost cost_qr(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = 4 * static_cast<double>(shape.numel()) *
                   static_cast<double>(std::min(size_from_end(shape, 0), size_from_end(shape, 1)))};
}

}  // namespace

const OpDef kQr{.name = "qr",
                .num_outputs = 2,
                .attrs = attrs_def<QrAttrs>(),
                .infer = infer_qr,
                .sbp = sbp_qr,
                .grad = grad_qr,
                .cost = cost_qr,
                .saved_outputs = 0b11,
                .autocast = AutocastRule::kFloat32};

const OpDef kGeqrf{.name = "geqrf",
                   .num_outputs = 2,
                   .infer = infer_geqrf,
                   .sbp = sbp_qr,
                   .grad = not_differentiable,
                   .cost = cost_qr,
                   .autocast = AutocastRule::kFloat32};

void register_qr(OpTable& table);

void register_qr(OpTable& table) {
  table.add(kQr);
  table.add(kGeqrf);
}

}  // namespace ops

namespace linalg {

Qr qr(const TensorArg& x, const QrOptions& options) {
  return ops::located(x.site(), [&]() -> Qr {
    if (options.mode != "reduced" && options.mode != "complete" && options.mode != "r") {
      throw InvalidArgument(
          str("[qr] mode is \"", options.mode, "\"; give \"reduced\", \"complete\" or \"r\""),
          x.site());
    }
    std::array<Tensor, 2> outputs = dispatch_multi<2>(
        ops::kQr, {&x.tensor()}, ops::QrAttrs{options.mode == "complete"}, x.site());
    if (options.mode == "r") return {new_empty(x, {0}), std::move(outputs[1])};
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

Geqrf geqrf(const TensorArg& x) {
  return ops::located(x.site(), [&]() -> Geqrf {
    std::array<Tensor, 2> outputs;
    const Tensor* const inputs[] = {&x.tensor()};
    Call call{ops::kGeqrf, inputs, nullptr, x.site()};
    dispatch(call, outputs.data());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

namespace {

// I - V T V^T.
struct Reflections {
  Tensor V, T;  // (…, m, k), (…, k, k)
};

// T^-1 = diag(tau)^-1 + S with the upper triangle S of V^T V without its diagonal (Joffrain et al.
// 2006), so T = (I + diag(tau) S)^-1 diag(tau), also if an element of tau is 0.
Reflections reflections(const TensorArg& x, const TensorArg& tau, const char* function) {
  const bool fits = x->dim() >= 2 && tau->dim() == x->dim() - 1 && x->size(-2) >= tau->size(-1) &&
                    x->size(-1) >= tau->size(-1) && x->dtype() == tau->dtype() &&
                    ops::leading_dims(x->shape(), 2) == ops::leading_dims(tau->shape(), 1);
  if (!fits) {
    throw InvalidArgument(str("[", function,
                              "] takes x (…, m, n) and tau (…, k) with k of at most m and n, "
                              "one batch and one dtype; received ",
                              x->meta(), " and ", tau->meta()));
  }
  const int64_t m = x->size(-2), k = tau->size(-1);
  const Tensor v = add(tril(narrow(x, -1, 0, k), -1), ops::identity_like(x, m, k));
  const Tensor column = unsqueeze(tau, -1);
  const Tensor upper = mul(column, triu(matmul(ops::transposed(v), v), 1));
  const Tensor scale = mul(column, ops::identity_like(x, k, k));
  const Tensor t = dispatch(ops::kSolveTriangular, {&upper, &scale},
                            ops::TriangularAttrs{.upper = true, .unitriangular = true}, x.site());
  return {v, t};
}

}  // namespace

Tensor householder_product(const TensorArg& x, const TensorArg& tau) {
  return ops::named("householder_product", x.site(), [&]() -> Tensor {
    if (x->dim() >= 2 && x->size(-2) < x->size(-1)) {
      throw InvalidArgument(str("[householder_product] takes x (…, m, n) with m >= n; received ",
                                x->meta(), "; narrow it to the columns of the product"));
    }
    const Reflections own = reflections(x, tau, "householder_product");
    const Tensor rows = ops::transposed(narrow(own.V, -2, 0, x->size(-1)));  // V^T of I's columns
    return sub(ops::identity_like(x, x->size(-2), x->size(-1)), matmul(own.V, matmul(own.T, rows)));
  });
}

Tensor ormqr(const TensorArg& x, const TensorArg& tau, const TensorArg& y,
             const OrmqrOptions& options) {
  return ops::named("ormqr", x.site(), [&]() -> Tensor {
    const Reflections own = reflections(x, tau, "ormqr");
    const bool fits = y->dim() == x->dim() && y->dtype() == x->dtype() &&
                      y->size(options.left ? -2 : -1) == x->size(-2);
    if (!fits) {
      throw InvalidArgument(str("[ormqr] takes y (…, ", x->size(-2), ", k), or (…, k, ",
                                x->size(-2),
                                ") if not left, with the batch and dtype of x; "
                                "received ",
                                y->meta()));
    }
    const Tensor t = options.transpose ? ops::transposed(own.T) : own.T;
    if (options.left) return sub(y, matmul(own.V, matmul(t, matmul(ops::transposed(own.V), y))));
    return sub(y, matmul(matmul(matmul(y, own.V), t), ops::transposed(own.V)));
  });
}

}  // namespace linalg

Tensor orgqr(const TensorArg& x, const TensorArg& tau) {
  return ops::named("orgqr", x.site(),
                    [&]() -> Tensor { return linalg::householder_product(x, tau); });
}

linalg::Geqrf LinalgMethods::geqrf(Site site) const {
  return linalg::geqrf({self(), site});
}

Tensor LinalgMethods::orgqr(const TensorArg& tau) const {
  return flow::orgqr({self(), tau.site()}, tau);
}

Tensor LinalgMethods::ormqr(const TensorArg& tau, const TensorArg& y) const {
  return ormqr(tau, y, {});
}

Tensor LinalgMethods::ormqr(const TensorArg& tau, const TensorArg& y,
                            const linalg::OrmqrOptions& options) const {
  return linalg::ormqr({self(), tau.site()}, tau, y, options);
}

linalg::Qr LinalgMethods::qr(Site site) const {
  return linalg::qr({self(), site});
}

linalg::Qr LinalgMethods::qr(const linalg::QrOptions& options, Site site) const {
  return linalg::qr({self(), site}, options);
}

}  // namespace flow
