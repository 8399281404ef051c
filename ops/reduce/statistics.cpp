#include "ops/reduce/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/statistics_op.h"

namespace flow {

namespace ops {

namespace {

void check_floating(const OpContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
}

void infer_norm(InferContext& ctx) {
  const auto& attrs = ctx.attrs<VectorNormAttrs>();
  check_floating(ctx);
  const Shape& shape = ctx.input(0).shape;
  if (attrs.p < 0 || std::isinf(attrs.p)) {
    ctx.check(reduced_count(shape, attrs.dims) > 0,
              "there are no elements for the norm with p = ", attrs.p,
              "; it is only defined over at least one");
  }
  ctx.add_output(reduced_shape(shape, attrs.dims, attrs.keepdim), ctx.input(0).dtype);
}

void infer_logsumexp(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  check_floating(ctx);
  ctx.add_output(reduced_shape(ctx.input(0).shape, attrs.dims, attrs.keepdim), ctx.input(0).dtype);
}

template <class Attrs>
void add_kept_dims(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const DimSet reduced = dim_set(attrs.dims);
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if ((reduced >> i & 1U) != 0) continue;
    ctx.add({sbp::split(i)}, {sbp::split(reduced_dim(i, attrs.dims, attrs.keepdim))});
  }
}

// The norm of the whole is the sum (p = 0 and 1) or the extremum (p infinite) of the norms of its
// parts.
void sbp_norm(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<VectorNormAttrs>();
  add_kept_dims<VectorNormAttrs>(ctx);
  const bool adds = attrs.p == 0 || attrs.p == 1;
  if (!adds && !std::isinf(attrs.p)) return;
  const Sbp partial = adds ? sbp::partial_sum : attrs.p > 0 ? sbp::partial_max : sbp::partial_min;
  for (const int64_t dim : attrs.dims)
    ctx.add({sbp::split(dim)}, {partial});
}

Ints ints_of(const Shape& dims) {
  return Ints(std::vector<int64_t>(dims.begin(), dims.end()));
}

// p infinite: dx = sign(x) dy, divided evenly among the elements with |x| = y. p = 0: dx = 0.
void grad_norm(GradContext& ctx) {
  const auto& attrs = ctx.attrs<VectorNormAttrs>();
  const Tensor x = ctx.input(0);
  const auto restored = [&](const Tensor& t) {
    return with_reduced_dims(t, x.shape(), attrs.dims, attrs.keepdim);
  };
  const Tensor dy = restored(ctx.dy());
  if (attrs.p == 0) {
    ctx.set(0, mul(mul(x, 0), dy));
    return;
  }
  const Tensor y = restored(ctx.output());
  if (attrs.p == 1) {
    ctx.set(0, mul(sign(x), dy));
  } else if (attrs.p == 2) {
    ctx.set(0, mul(x, masked_fill(div(dy, y), eq(y, 0), 0)));
  } else if (std::isinf(attrs.p)) {
    const Tensor is_extreme = cast(eq(abs(x), y), x.dtype());
    const Tensor count =
        attrs.dims.empty() ? is_extreme : sum(is_extreme, ints_of(attrs.dims), {.keepdim = true});
    ctx.set(0, mul(mul(sign(x), is_extreme), div(dy, count)));
  } else {
    const Tensor ratio = pow(div(abs(x), y), attrs.p - 1);
    const Tensor is_flat = attrs.p < 1 ? eq(x, 0) : eq(y, 0);
    ctx.set(0, mul(masked_fill(mul(sign(x), ratio), is_flat, 0), dy));
  }
}

// dx = dy exp(x - y): a softmax.
void grad_logsumexp(GradContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  const Tensor x = ctx.input(0);
  const auto restored = [&](const Tensor& t) {
    return with_reduced_dims(t, x.shape(), attrs.dims, attrs.keepdim);
  };
  const Tensor y = restored(ctx.output());
  // If every element is -inf, y is -inf too and each difference would be NaN.
  const Tensor finite = masked_fill(y, eq(y, -std::numeric_limits<double>::infinity()), 0);
  ctx.set(0, mul(exp(sub(x, finite)), restored(ctx.dy())));
}

// An exponential or a power of each element.
Cost cost(const SbpContext& ctx) {
  return {.flops = 16 * static_cast<double>(ctx.input(0).numel)};
}

}  // namespace

const OpDef kNorm{.name = "norm",
                  .attrs = attrs_def<VectorNormAttrs>(),
                  .infer = infer_norm,
                  .sbp = sbp_norm,
                  .grad = grad_norm,
                  .cost = cost,
                  .saved_inputs = 1,
                  .saved_outputs = 1,
                  .autocast = AutocastRule::kFloat32};
const OpDef kLogsumexp{.name = "logsumexp",
                       .attrs = attrs_def<ReduceAttrs>(),
                       .infer = infer_logsumexp,
                       .sbp = add_kept_dims<ReduceAttrs>,
                       .grad = grad_logsumexp,
                       .cost = cost,
                       .saved_inputs = 1,
                       .saved_outputs = 1,
                       .autocast = AutocastRule::kFloat32};

void register_statistics(OpTable& table) {
  table.add(kNorm);
  table.add(kLogsumexp);
}

namespace {

Tensor norm_over(const TensorArg& x, const Shape& dims, bool keepdim, double p) {
  return dispatch(kNorm, {&x.tensor()}, VectorNormAttrs{dims, keepdim, p}, x.site());
}

Tensor centred(const TensorArg& x, const Shape& dims) {
  if (dims.empty()) return sub(x, mean(x));
  return sub(x, {mean(x, ints_of(dims), {.keepdim = true}), x.site()});
}

// Computes fn(x) in float32 and rounds the result to the 16 bits of x. Intermediate sums may exceed
// the range of 16 bits.
template <class Fn>
Tensor rounded_once(const TensorArg& x, const Fn& fn) {
  const Tensor wide = cast(x, DType::kFloat32);
  return cast({fn(TensorArg(wide, x.site())), x.site()}, x->dtype());
}

bool is_narrow(const TensorArg& x) {
  return is_half(x->dtype());
}

// The number by which the sum of squared distances from the mean is divided.
double divisor(const TensorArg& x, const Shape& dims, const VarOptions& options) {
  const auto count = static_cast<double>(reduced_count(x->shape(), dims));
  return std::max(0.0, count - options.correction.value_or(options.unbiased ? 1 : 0));
}

}  // namespace

}  // namespace ops

Tensor var(const TensorArg& x) {
  return ops::named("var", x.site(), [&]() -> Tensor { return var(x, Ints()); });
}

Tensor var(const TensorArg& x, const Ints& dims, const VarOptions& options) {
  return ops::named("var", x.site(), [&]() -> Tensor {
    if (ops::is_narrow(x)) {
      return ops::rounded_once(x, [&](const TensorArg& wide) { return var(wide, dims, options); });
    }
    const Shape over = ops::reduction_dims(dims, x->dim(), "var");
    const Tensor distances = ops::centred(x, over);
    const Tensor squares = mul({distances, x.site()}, {distances, x.site()});
    const Tensor total = sum({squares, x.site()}, dims, {.keepdim = options.keepdim});
    return div({total, x.site()}, ops::divisor(x, over, options));
  });
}

Tensor std(const TensorArg& x) {
  return ops::named("std", x.site(), [&]() -> Tensor { return std(x, Ints()); });
}

// Computed as a norm, whose gradient is zero where all elements are equal.
Tensor std(const TensorArg& x, const Ints& dims, const VarOptions& options) {
  return ops::named("std", x.site(), [&]() -> Tensor {
    if (ops::is_narrow(x)) {
      return ops::rounded_once(x, [&](const TensorArg& wide) { return std(wide, dims, options); });
    }
    const Shape over = ops::reduction_dims(dims, x->dim(), "std");
    const Tensor distances = ops::centred(x, over);
    const double divisor = ops::divisor(x, over, options);
    if (divisor == 0) return sqrt(var(x, dims, options));  // NaN, with its gradient
    const Tensor length = ops::norm_over({distances, x.site()}, over, options.keepdim, 2);
    return div({length, x.site()}, ::std::sqrt(divisor));
  });
}

VarMean var_mean(const TensorArg& x) {
  return var_mean(x, Ints());
}

VarMean var_mean(const TensorArg& x, const Ints& dims, const VarOptions& options) {
  return ops::named("var_mean", x.site(), [&]() -> VarMean {
    return {var(x, dims, options), mean(x, dims, {.keepdim = options.keepdim})};
  });
}

StdMean std_mean(const TensorArg& x) {
  return std_mean(x, Ints());
}

StdMean std_mean(const TensorArg& x, const Ints& dims, const VarOptions& options) {
  return ops::named("std_mean", x.site(), [&]() -> StdMean {
    return {std(x, dims, options), mean(x, dims, {.keepdim = options.keepdim})};
  });
}

Tensor norm(const TensorArg& x, const NormOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    return ops::norm_over(x, ops::reduction_dims(options.dim, x->dim(), "norm"), options.keepdim,
                          options.p);
  });
}

Tensor vector_norm(const TensorArg& x, const VectorNormOptions& options) {
  return ops::named("vector_norm", x.site(), [&]() -> Tensor {
    return norm(x, {.p = options.ord, .dim = options.dim, .keepdim = options.keepdim});
  });
}

Tensor logsumexp(const TensorArg& x) {
  return logsumexp(x, Ints());
}

Tensor logsumexp(const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    const ops::ReduceAttrs attrs{ops::reduction_dims(dims, x->dim(), "logsumexp"), options.keepdim};
    const Tensor numbers = ops::as_floating(x);
    return dispatch(ops::kLogsumexp, {&numbers}, attrs, x.site());
  });
}

Tensor nanmean(const TensorArg& x) {
  return nanmean(x, {});
}

Tensor nanmean(const TensorArg& x, const Ints& dims, const ReduceOptions& options) {
  return ops::named("nanmean", x.site(), [&]() -> Tensor {
    if (!is_floating(x->dtype()) || !is_floating(options.dtype.value_or(x->dtype()))) {
      throw InvalidArgument(
          str("[nanmean] takes floating numbers and a floating dtype; received ", x->meta(),
              ", dtype ", options.dtype.value_or(x->dtype()), "; cast them"),
          x.site());
    }
    const Site site = x.site();
    const Tensor numbers = logical_not({isnan(x), site});
    const Tensor count = sum({numbers, site}, dims, {.keepdim = options.keepdim});
    return div({nansum(x, dims, options), site}, count);
  });
}

Tensor count_nonzero(const TensorArg& x, const Ints& dims) {
  return ops::named("count_nonzero", x.site(), [&]() -> Tensor {
    if (x->dtype() == DType::kBool) return sum(x, dims);
    return sum({ne(x, 0), x.site()}, dims);
  });
}

Tensor ReduceMethods::count_nonzero(Site site) const {
  return flow::count_nonzero(TensorArg(self(), site));
}

Tensor ReduceMethods::count_nonzero(const Ints& dims, Site site) const {
  return flow::count_nonzero(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::nanmean(Site site) const {
  return flow::nanmean(TensorArg(self(), site));
}

Tensor ReduceMethods::nanmean(const Ints& dims, Site site) const {
  return flow::nanmean(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::nanmean(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::nanmean(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::var(Site site) const {
  return flow::var(TensorArg(self(), site));
}

Tensor ReduceMethods::var(const Ints& dims, Site site) const {
  return flow::var(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::var(const Ints& dims, const VarOptions& options, Site site) const {
  return flow::var(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::std(Site site) const {
  return flow::std(TensorArg(self(), site));
}

Tensor ReduceMethods::std(const Ints& dims, Site site) const {
  return flow::std(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::std(const Ints& dims, const VarOptions& options, Site site) const {
  return flow::std(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::norm(Site site) const {
  return flow::norm(TensorArg(self(), site));
}

Tensor ReduceMethods::norm(const NormOptions& options, Site site) const {
  return flow::norm(TensorArg(self(), site), options);
}

Tensor ReduceMethods::logsumexp(const Ints& dims, Site site) const {
  return flow::logsumexp(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::logsumexp(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::logsumexp(TensorArg(self(), site), dims, options);
}

}  // namespace flow
