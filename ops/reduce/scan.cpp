#include "ops/reduce/scan.h"

#include <array>
#include <cmath>

#include "core/dispatch.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather_op.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan_op.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_scan(InferContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  ctx.add_output(ctx.input(0).shape, is_floating(dtype) ? dtype : DType::kInt64);
}

// Lines along `dim` are independent of each other.
template <class Attrs>
void sbp_lines(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i == ctx.attrs<Attrs>().dim) continue;
    ctx.add(std::vector<Sbp>(static_cast<size_t>(ctx.num_inputs()), sbp::split(i)),
            {sbp::split(i)});
  }
}

// A running sum is linear if it wraps around where its input does.
void sbp_cumsum(SbpContext& ctx) {
  sbp_lines<CumsumAttrs>(ctx);
  if (ctx.input(0).dtype == ctx.output(0).dtype) {
    ctx.add({sbp::partial_sum}, {sbp::partial_sum});
  }
}

Tensor cumsum_from(const TensorArg& x, const CumsumAttrs& attrs) {
  return dispatch(kCumsum, {&x.tensor()}, attrs, x.site());
}

// dx[k] = sum of dy[i] over i >= k: the running sum from the other end.
void grad_cumsum(GradContext& ctx) {
  const auto& attrs = ctx.attrs<CumsumAttrs>();
  ctx.set(0, cumsum_from(ctx.dy(), {attrs.dim, !attrs.reverse}));
}

Tensor cumprod_backward(const Tensor& dy, const Tensor& x, int64_t dim) {
  return dispatch(kCumprodBackward, {&dy, &x}, CumprodAttrs{dim}, Site::none());
}

// dx[k] = sum over i >= k of dy[i] times the product of x[j] over j <= i, j != k.
void grad_cumprod(GradContext& ctx) {
  ctx.set(0, cumprod_backward(ctx.dy(), ctx.input(0), ctx.attrs<CumprodAttrs>().dim));
}

void infer_backward(InferContext& ctx) {
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "the gradient must have the shape and dtype of x");
  ctx.add_output_like(1);
}

// Linear in dy.
void sbp_backward(SbpContext& ctx) {
  sbp_lines<CumprodAttrs>(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// With M[k][i] = product of x[j] over j <= i, j != k, the op is dx[k] = sum over i >= k of dy[i]
// M[k][i]. For the gradient g of dx:
//   d dy[i] = sum over k <= i of g[k] M[k][i]
//   d x[j]  = sum over k != j of the gradient of the running product M[k], fed with g[k] dy
// This needs O(n^2) memory per line, but it is correct for zeros too.
void grad_backward(GradContext& ctx) {
  const int64_t dim = ctx.attrs<CumprodAttrs>().dim;
  const Tensor g = unsqueeze(movedim(ctx.dy(), dim, -1), -1);      // (…, n, 1)
  const Tensor x = unsqueeze(movedim(ctx.input(1), dim, -1), -2);  // (…, 1, n)
  const int64_t n = x.size(-1);
  Shape square = x.shape();
  square[square.size() - 2] = n;
  const Tensor wide = expand(x, square);
  const Tensor ones = ones_like(wide);
  const Tensor diagonal = tril(triu(ones));  // the identity, in the layout of x
  const Tensor without = add(mul(wide, sub(ones, diagonal)), diagonal);  // x[j], 1 for j = k
  if (ctx.needs(0)) {
    const Tensor products = triu(cumprod(without, -1));
    ctx.set(0, movedim(sum(mul(g, products), -2), -1, dim));
  }
  if (ctx.needs(1)) {
    const Tensor dy = unsqueeze(movedim(ctx.input(0), dim, -1), -2);
    const Tensor dwithout = cumprod_backward(triu(mul(g, dy)), without, without.dim() - 1);
    ctx.set(1, movedim(sum(mul(dwithout, sub(ones, diagonal)), -2), -1, dim));
  }
}

void infer_extrema(InferContext& ctx) {
  ctx.add_output_like(0);
  ctx.add_output(ctx.input(0).shape, DType::kInt64);
}

void sbp_extrema(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i != ctx.attrs<CumprodAttrs>().dim)
      ctx.add({sbp::split(i)}, {sbp::split(i), sbp::split(i)});
  }
}

// dx is the sum of dy over the positions whose extremum the element is.
void grad_extrema(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Shape& shape = ctx.input_meta(0)->shape;
  ctx.set(0, shape.empty()
                 ? ctx.dy()
                 : ungather(ctx.dy(), ctx.attrs<CumprodAttrs>().dim, ctx.output(1), shape));
}

void infer_logcumsumexp(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

Tensor logcumsumexp_from(const TensorArg& x, const CumsumAttrs& attrs) {
  return dispatch(kLogcumsumexp, {&x.tensor()}, attrs, x.site());
}

// dx[k] = sum over i >= k of dy[i] exp(x[k] - y[i]), computed by the same scan from the other end,
// separately for positive and negative dy: exp(x[k] + log(sum of exp(log |dy[i]| - y[i]))).
void grad_logcumsumexp(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<CumsumAttrs>();
  const Tensor x = ctx.input(0);
  const Tensor y = ctx.output();
  const auto share = [&](const Tensor& part, const Tensor& is_part) {
    const Tensor size = log(where(is_part, part, ones_like(part)));
    const Tensor terms = where(is_part, sub(size, y), -INFINITY);
    const Tensor total = logcumsumexp_from(terms, {attrs.dim, !attrs.reverse});
    return exp(add(total, x));
  };
  const Tensor& dy = ctx.dy();
  ctx.set(0, sub(share(dy, gt(dy, 0)), share(neg(dy), lt(dy, 0))));
}

}  // namespace

const OpDef kCummax{.name = "cummax",
                    .num_outputs = 2,
                    .attrs = attrs_def<CumprodAttrs>(),
                    .infer = infer_extrema,
                    .sbp = sbp_extrema,
                    .grad = grad_extrema,
                    .saved_outputs = 0b10};
const OpDef kCummin{.name = "cummin",
                    .num_outputs = 2,
                    .attrs = attrs_def<CumprodAttrs>(),
                    .infer = infer_extrema,
                    .sbp = sbp_extrema,
                    .grad = grad_extrema,
                    .saved_outputs = 0b10};
const OpDef kLogcumsumexp{.name = "logcumsumexp",
                          .attrs = attrs_def<CumsumAttrs>(),
                          .infer = infer_logcumsumexp,
                          .sbp = sbp_lines<CumsumAttrs>,
                          .grad = grad_logcumsumexp,
                          .saved_inputs = 1,
                          .saved_outputs = 1,
                          .autocast = AutocastRule::kFloat32};
const OpDef kCumsum{.name = "cumsum",
                    .attrs = attrs_def<CumsumAttrs>(),
                    .infer = infer_scan,
                    .sbp = sbp_cumsum,
                    .grad = grad_cumsum,
                    .autocast = AutocastRule::kFloat32};
const OpDef kCumprod{.name = "cumprod",
                     .attrs = attrs_def<CumprodAttrs>(),
                     .infer = infer_scan,
                     .sbp = sbp_lines<CumprodAttrs>,
                     .grad = grad_cumprod,
                     .saved_inputs = 1,
                     .autocast = AutocastRule::kFloat32};
const OpDef kCumprodBackward{.name = "cumprod_backward",
                             .num_inputs = 2,
                             .attrs = attrs_def<CumprodAttrs>(),
                             .infer = infer_backward,
                             .sbp = sbp_backward,
                             .grad = grad_backward,
                             .saved_inputs = 0b11};

void register_scan(OpTable& table) {
  for (const OpDef* op :
       {&kCumsum, &kCumprod, &kCumprodBackward, &kCummax, &kCummin, &kLogcumsumexp})
    table.add(*op);
}

}  // namespace ops

namespace {

// scan(x) in the requested dtype. Narrow integers wrap around at the end.
template <class Scan>
Tensor scan_as(const TensorArg& x, const ScanOptions& options, const Scan& scan) {
  if (!options.dtype) return scan(x);
  const Tensor wide = cast(x, *options.dtype);
  const Tensor y = scan(TensorArg(wide, x.site()));
  return cast({y, x.site()}, *options.dtype);
}

}  // namespace

Tensor cumsum(const TensorArg& x, int64_t dim, const ScanOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    return scan_as(x, options, [dim](const TensorArg& wide) {
      return ops::cumsum_from(wide, {normalize_dim(dim, wide->dim(), "cumsum"), false});
    });
  });
}

Tensor cumprod(const TensorArg& x, int64_t dim, const ScanOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    return scan_as(x, options, [dim](const TensorArg& wide) {
      const ops::CumprodAttrs attrs{normalize_dim(dim, wide->dim(), "cumprod")};
      return dispatch(ops::kCumprod, {&wide.tensor()}, attrs, wide.site());
    });
  });
}

namespace {

ValuesIndices running_extrema(const OpDef& op, const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> ValuesIndices {
    const ops::CumprodAttrs attrs{normalize_dim(dim, x->dim(), op.name)};
    std::array<Tensor, 2> outputs = dispatch_multi<2>(op, {&x.tensor()}, attrs, x.site());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

}  // namespace

ValuesIndices cummax(const TensorArg& x, int64_t dim) {
  return running_extrema(ops::kCummax, x, dim);
}

ValuesIndices cummin(const TensorArg& x, int64_t dim) {
  return running_extrema(ops::kCummin, x, dim);
}

Tensor logcumsumexp(const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> Tensor {
    return ops::logcumsumexp_from(x, {normalize_dim(dim, x->dim(), "logcumsumexp"), false});
  });
}

Tensor diff(const TensorArg& x, const DiffOptions& options) {
  return ops::named("diff", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() == 0 || options.n < 0) {
      throw InvalidArgument(str("[diff] takes x of at least one dim and n >= 0; received ",
                                x->meta(), ", n = ", options.n, "; give a vector"),
                            site);
    }
    const int64_t d = normalize_dim(options.dim, x->dim(), "diff");
    if (options.n == 0) return clone(x);
    std::vector<Tensor> parts;
    if (options.prepend.defined()) parts.push_back(options.prepend);
    parts.push_back(x);
    if (options.append.defined()) parts.push_back(options.append);
    Tensor y = parts.size() == 1 ? parts[0] : cat({parts, site}, d);
    for (int64_t i = 0; i < options.n && y.size(d) > 0; ++i) {
      const Tensor before = narrow({y, site}, d, 0, y.size(d) - 1);
      const Tensor after = narrow({y, site}, d, 1, y.size(d) - 1);
      y = y.dtype() == DType::kBool ? logical_xor({after, site}, {before, site})
                                    : sub({after, site}, {before, site});
    }
    return y;
  });
}

Tensor ReduceMethods::cumsum(int64_t dim, Site site) const {
  return flow::cumsum(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::cumsum(int64_t dim, const ScanOptions& options, Site site) const {
  return flow::cumsum(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::cumprod(int64_t dim, Site site) const {
  return flow::cumprod(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::cumprod(int64_t dim, const ScanOptions& options, Site site) const {
  return flow::cumprod(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::diff(Site site) const {
  return flow::diff(TensorArg(self(), site));
}

Tensor ReduceMethods::diff(const DiffOptions& options, Site site) const {
  return flow::diff(TensorArg(self(), site), options);
}

ValuesIndices ReduceMethods::cummax(int64_t dim, Site site) const {
  return flow::cummax(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::cummin(int64_t dim, Site site) const {
  return flow::cummin(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::logcumsumexp(int64_t dim, Site site) const {
  return flow::logcumsumexp(TensorArg(self(), site), dim);
}

const Tensor& InPlaceMethods::cumsum_(int64_t dim, Site site) const {
  return ops::write_over("cumsum_", {self(), site}, {},
                         [&](const TensorArg& old) { return flow::cumsum(old, dim); });
}

const Tensor& InPlaceMethods::cumprod_(int64_t dim, Site site) const {
  return ops::write_over("cumprod_", {self(), site}, {},
                         [&](const TensorArg& old) { return flow::cumprod(old, dim); });
}

}  // namespace flow
