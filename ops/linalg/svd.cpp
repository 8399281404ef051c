#include "ops/linalg/svd.h"

#include <algorithm>
#include <array>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linalg/qr.h"
#include "ops/linalg/tolerance.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_svd(InferContext& ctx) {
  check_matrices(ctx, 0);
  const TensorMeta& x = ctx.input(0);
  const int64_t m = size_from_end(x.shape, 1), n = size_from_end(x.shape, 0), k = std::min(m, n);
  const Shape batch = leading_dims(x.shape, 2);
  Shape values = batch;
  values.push_back(k);
  ctx.add_output(matrix_shape(batch, m, k), x.dtype);
  ctx.add_output(values, x.dtype);
  ctx.add_output(matrix_shape(batch, k, n), x.dtype);
}

void sbp_batch(SbpContext& ctx) {
  batch_sbp(ctx);
}

Tensor skew(const Tensor& x) {
  return sub(x, transposed(x));
}

// With E[i][j] = s[j]^2 - s[i]^2, and 1 on the diagonal (Townsend 2016):
//   dx = U (skew(U^T dU) / E S + S skew(V^T dV) / E + diag(dS)) Vh
//        + (I - U U^T) dU S^-1 Vh + U S^-1 dVh (I - V Vh)
void grad_svd(GradContext& ctx) {
  const Tensor& du = ctx.dy(0);
  const Tensor& ds = ctx.dy(1);
  const Tensor& dvh = ctx.dy(2);
  if (!du.defined() && !ds.defined() && !dvh.defined()) return;
  const Tensor u = ctx.output(0), s = ctx.output(1), vh = ctx.output(2);
  const int64_t m = u.size(-2), k = s.size(-1), n = vh.size(-1);
  const Tensor row = unsqueeze(s, -2), column = unsqueeze(s, -1);
  Tensor inner;
  const auto collect = [&](const Tensor& part) {
    inner = inner.defined() ? add(inner, part) : part;
  };
  if (ds.defined()) collect(diag_embed(ds));
  Tensor squares;
  if (du.defined() || dvh.defined())
    squares = add(mul(sub(row, column), add(row, column)), identity_like(u, k, k));
  if (du.defined()) collect(mul(div(skew(matmul(transposed(u), du)), squares), row));
  if (dvh.defined()) collect(mul(column, div(skew(matmul(vh, transposed(dvh))), squares)));
  Tensor dx = matmul(matmul(u, inner), vh);
  if (du.defined() && m > k) {
    const Tensor outside = sub(du, matmul(u, matmul(transposed(u), du)));
    dx = add(dx, matmul(div(outside, row), vh));
  }
  if (dvh.defined() && n > k) {
    const Tensor outside = sub(dvh, matmul(matmul(dvh, transposed(vh)), vh));
    dx = add(dx, matmul(u, div(outside, column)));
  }
  ctx.set(0, dx);
}

Cost cost_svd(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = 12 * static_cast<double>(shape.numel()) *
                   static_cast<double>(std::min(size_from_end(shape, 0), size_from_end(shape, 1)))};
}

void infer_svdvals(InferContext& ctx) {
  check_matrices(ctx, 0);
  const TensorMeta& x = ctx.input(0);
  Shape values = leading_dims(x.shape, 2);
  values.push_back(std::min(size_from_end(x.shape, 0), size_from_end(x.shape, 1)));
  ctx.add_output(values, x.dtype);
}

// dx = U diag(dS) Vh with the vectors of x, which backward computes.
void grad_svdvals(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  std::array<Tensor, 3> parts;
  const Tensor* const inputs[] = {&x};
  Call call{kSvd, inputs, nullptr, Site::here()};
  dispatch(call, parts.data());
  ctx.set(0, matmul(mul(parts[0], unsqueeze(ctx.dy(), -2)), parts[2]));
}

Cost cost_svdvals(const SbpContext& ctx) {
  return {.flops = cost_svd(ctx).flops / 3};
}

void infer_pinv(InferContext& ctx) {
  check_matrices(ctx, 0);
  const TensorMeta& x = ctx.input(0);
  ctx.add_output(
      matrix_shape(leading_dims(x.shape, 2), size_from_end(x.shape, 0), size_from_end(x.shape, 1)),
      x.dtype);
}

// With y = pinv(x) and g = dy^T (Golub, Pereyra 1973):
//   dx = (I - x y) g y y^T + y^T y g (I - y x) - y^T dy y^T
void grad_pinv(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0), y = ctx.output();
  const Tensor g = transposed(ctx.dy()), yt = transposed(y);
  const Tensor of_inverse = matmul(matmul(yt, ctx.dy()), yt);
  const Tensor columns = matmul(matmul(g, y), yt);  // g y y^T
  const Tensor rows = matmul(matmul(yt, y), g);     // y^T y g
  const Tensor outside_columns = sub(columns, matmul(matmul(x, y), columns));
  const Tensor outside_rows = sub(rows, matmul(rows, matmul(y, x)));
  ctx.set(0, sub(add(outside_columns, outside_rows), of_inverse));
}

}  // namespace

const OpDef kSvd{.name = "svd",
                 .num_outputs = 3,
                 .infer = infer_svd,
                 .sbp = sbp_batch,
                 .grad = grad_svd,
                 .cost = cost_svd,
                 .saved_outputs = 0b111,
                 .autocast = AutocastRule::kFloat32};

const OpDef kSvdvals{.name = "svdvals",
                     .infer = infer_svdvals,
                     .sbp = sbp_batch,
                     .grad = grad_svdvals,
                     .cost = cost_svdvals,
                     .saved_inputs = 0b1,
                     .autocast = AutocastRule::kFloat32};

const OpDef kPinv{.name = "pinv",
                  .attrs = attrs_def<PinvAttrs>(),
                  .infer = infer_pinv,
                  .sbp = sbp_batch,
                  .grad = grad_pinv,
                  .cost = cost_svd,
                  .saved_inputs = 0b1,
                  .saved_outputs = 0b1,
                  .autocast = AutocastRule::kFloat32};

void register_svd(OpTable& table);

void register_svd(OpTable& table) {
  table.add(kSvd);
  table.add(kSvdvals);
  table.add(kPinv);
}

}  // namespace ops

namespace linalg {

namespace {

Svd reduced_svd(const TensorArg& x) {
  std::array<Tensor, 3> outputs;
  const Tensor* const inputs[] = {&x.tensor()};
  Call call{ops::kSvd, inputs, nullptr, x.site()};
  dispatch(call, outputs.data());
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

// The columns of a square orthogonal matrix that follow those of x.
Tensor complement(const Tensor& x) {
  const Tensor all = qr(x.detach(), {.mode = "complete"}).Q;
  return narrow(all, -1, x.size(-1), x.size(-2) - x.size(-1));
}

}  // namespace

Svd svd(const TensorArg& x, const SvdOptions& options) {
  return ops::located(x.site(), [&]() -> Svd {
    Svd parts = reduced_svd(x);
    if (!options.full_matrices) return parts;
    const int64_t m = x->size(-2), n = x->size(-1);
    if (m > n) parts.U = cat({parts.U, complement(parts.U)}, -1);
    if (n > m) {
      const Tensor rows = ops::transposed(complement(ops::transposed(parts.Vh)));
      parts.Vh = cat({parts.Vh, rows}, -2);
    }
    return parts;
  });
}

Tensor svdvals(const TensorArg& x) {
  return ops::located(x.site(),
                      [&]() -> Tensor { return dispatch(ops::kSvdvals, {&x.tensor()}, x.site()); });
}

Polar polar(const TensorArg& x) {
  return ops::named("polar", x.site(), [&]() -> Polar {
    if (x->dim() < 2 || x->size(-2) < x->size(-1)) {
      throw InvalidArgument(str("[polar] takes matrices (…, m, n) with m >= n; received ",
                                x->meta(), "; decompose the transpose"));
    }
    const Svd parts = reduced_svd(x);
    const Tensor v = ops::transposed(parts.Vh);
    return {matmul(parts.U, parts.Vh), matmul(mul(v, unsqueeze(parts.S, -2)), parts.Vh)};
  });
}

Tensor pinv(const TensorArg& x, const PinvOptions& options) {
  return ops::named("pinv", x.site(), [&]() -> Tensor {
    const ops::Tolerances limits = ops::tolerances(x.tensor(), options.atol, options.rtol, "pinv");
    return dispatch(ops::kPinv, {&x.tensor()}, ops::PinvAttrs{limits.absolute, limits.relative},
                    x.site());
  });
}

Tensor pinverse(const TensorArg& x, double rcond) {
  return ops::named("pinverse", x.site(),
                    [&]() -> Tensor { return pinv(x, {.atol = 0, .rtol = rcond}); });
}

}  // namespace linalg

Tensor LinalgMethods::pinverse(double rcond, Site site) const {
  return linalg::pinverse({self(), site}, rcond);
}

}  // namespace flow
