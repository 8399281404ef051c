#include "ops/norm/softmax.h"

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/norm/softmax_op.h"
#include "ops/promotion.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace ops {
namespace {

// Checks all inputs: softmax has one, its gradients have dy and y.
void infer(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "takes a floating dtype; cast the input");
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(ctx.input(i).shape == ctx.input(0).shape && ctx.input(i).dtype == ctx.input(0).dtype,
              "inputs must have one shape and dtype");
  }
  ctx.add_output_like(0);
}

// Slices along `dim` are independent; the dim itself is coupled by the sum, and exp leaves no
// partial values.
void sbp(SbpContext& ctx) {
  const int64_t dim = ctx.attrs<SoftmaxAttrs>().dim;
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i == dim) continue;
    ctx.add(std::vector<Sbp>(static_cast<size_t>(ctx.num_inputs()), sbp::split(i)),
            {sbp::split(i)});
  }
}

// The same as above, and linear in dy.
void backward_sbp(SbpContext& ctx) {
  sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

Cost cost(const SbpContext& ctx) {
  constexpr double kFlopsPerElement = 20;  // exp is a polynomial of degree 6 and its reduction
  return {.flops = kFlopsPerElement * static_cast<double>(ctx.input(0).numel)};
}

Tensor sum_keeping(const Tensor& x, int64_t dim) {
  return sum(x, dim, {.keepdim = true});
}

// dx = (dy - sum(dy y)) y
void grad_softmax(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  ctx.set(0, softmax_backward(ctx.dy(), ctx.output(), ctx.attrs<SoftmaxAttrs>().dim));
}

// dx = dy - exp(y) sum(dy)
void grad_log_softmax(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  ctx.set(0, log_softmax_backward(ctx.dy(), ctx.output(), ctx.attrs<SoftmaxAttrs>().dim));
}

// v = (u - sum(u y)) y with upstream g:  du = (g - sum(g y)) y,
// dy = g u - g sum(u y) - u sum(g y)
void grad_softmax_backward(GradContext& ctx) {
  const Tensor& g = ctx.dy();
  if (!g.defined()) return;
  const int64_t dim = ctx.attrs<SoftmaxAttrs>().dim;
  const Tensor u = ctx.input(0);
  const Tensor y = ctx.input(1);
  if (ctx.needs(0)) ctx.set(0, softmax_backward(g, y, dim));
  if (ctx.needs(1)) {
    const Tensor uy = sum_keeping(mul(u, y), dim);
    const Tensor gy = sum_keeping(mul(g, y), dim);
    ctx.set(1, sub(mul(g, sub(u, uy)), mul(u, gy)));
  }
}

// v = u - exp(y) sum(u) with upstream g:  du = g - sum(g exp(y)),  dy = -g exp(y) sum(u)
void grad_log_softmax_backward(GradContext& ctx) {
  const Tensor& g = ctx.dy();
  if (!g.defined()) return;
  const int64_t dim = ctx.attrs<SoftmaxAttrs>().dim;
  const Tensor weighted = mul(g, exp(ctx.input(1)));
  if (ctx.needs(0)) ctx.set(0, sub(g, sum_keeping(weighted, dim)));
  if (ctx.needs(1)) ctx.set(1, neg(mul(weighted, sum_keeping(ctx.input(0), dim))));
}

// y = exp(x - m) / s
bool decompose_softmax(const DecomposeContext& ctx, const SbpContext& sbp, Tensor* outputs) {
  const int64_t dim = sbp.attrs<SoftmaxAttrs>().dim;
  if (outputs == nullptr) return pays_to_split_softmax(sbp.input(0), dim);
  const SplitSoftmax pieces = split_softmax(TensorArg(*ctx.inputs[0], ctx.site), dim);
  outputs[0] = cast(div(exp(pieces.shifted), pieces.sum), sbp.input(0).dtype);
  return true;
}

// y = (x - m) - log(s)
bool decompose_log_softmax(const DecomposeContext& ctx, const SbpContext& sbp, Tensor* outputs) {
  const int64_t dim = sbp.attrs<SoftmaxAttrs>().dim;
  if (outputs == nullptr) return pays_to_split_softmax(sbp.input(0), dim);
  const SplitSoftmax pieces = split_softmax(TensorArg(*ctx.inputs[0], ctx.site), dim);
  outputs[0] = cast(sub(pieces.shifted, log(pieces.sum)), sbp.input(0).dtype);
  return true;
}

}  // namespace

// The maximum only keeps exp in range; its gradient cancels.
SplitSoftmax split_softmax(const TensorArg& x, int64_t dim) {
  const Tensor wide = widened(x);
  SplitSoftmax pieces;
  pieces.max = amax(TensorArg(wide.detach(), x.site()), {dim}, {.keepdim = true});
  pieces.shifted = sub(TensorArg(wide, x.site()), pieces.max);
  pieces.sum = sum(exp(pieces.shifted), dim, {.keepdim = true});
  return pieces;
}

bool pays_to_split_softmax(const TensorMeta& x, int64_t dim) {
  if (!x.is_global() || x.numel == 0) return false;
  double parts = 1;
  double parts_of_dim = 1;
  for (int64_t axis = 0; axis < x.nd_sbp.size(); ++axis) {
    if (!x.nd_sbp[axis].is_split()) continue;
    const auto size = static_cast<double>(x.placement.shape()[axis]);
    parts *= size;
    if (x.nd_sbp[axis].dim() == dim) parts_of_dim *= size;
  }
  if (parts_of_dim == 1) return false;
  // The amount that a rank receives in the time in which the members of a group synchronise.
  constexpr double kMeetingBytes = 8192;
  const double numel = static_cast<double>(x.numel);
  const double rows = numel / static_cast<double>(x.shape[dim]) * parts_of_dim / parts;
  const double gathered =
      numel / parts * static_cast<double>(dtype_size(x.dtype)) * (parts_of_dim - 1);
  const double reduced = 2 * rows * sizeof(float) * (parts_of_dim - 1);
  return gathered > reduced + 2 * kMeetingBytes;
}

const OpDef kSoftmax{.name = "softmax",
                     .attrs = attrs_def<SoftmaxAttrs>(),
                     .infer = infer,
                     .sbp = sbp,
                     .grad = grad_softmax,
                     .cost = cost,
                     .decompose = decompose_softmax,
                     .saved_outputs = 0b1,
                     .autocast = AutocastRule::kFloat32};

const OpDef kLogSoftmax{.name = "log_softmax",
                        .attrs = attrs_def<SoftmaxAttrs>(),
                        .infer = infer,
                        .sbp = sbp,
                        .grad = grad_log_softmax,
                        .cost = cost,
                        .decompose = decompose_log_softmax,
                        .saved_outputs = 0b1,
                        .autocast = AutocastRule::kFloat32};

const OpDef kSoftmaxBackward{.name = "softmax_backward",
                             .num_inputs = 2,
                             .attrs = attrs_def<SoftmaxAttrs>(),
                             .infer = infer,
                             .sbp = backward_sbp,
                             .grad = grad_softmax_backward,
                             .saved_inputs = 0b11};

const OpDef kLogSoftmaxBackward{.name = "log_softmax_backward",
                                .num_inputs = 2,
                                .attrs = attrs_def<SoftmaxAttrs>(),
                                .infer = infer,
                                .sbp = backward_sbp,
                                .grad = grad_log_softmax_backward,
                                .cost = cost,
                                .saved_inputs = 0b11};

Tensor softmax_backward(const TensorArg& dy, const TensorArg& y, int64_t dim) {
  return dispatch(kSoftmaxBackward, {&dy.tensor(), &y.tensor()}, SoftmaxAttrs{dim}, dy.site());
}

Tensor log_softmax_backward(const TensorArg& dy, const TensorArg& y, int64_t dim) {
  return dispatch(kLogSoftmaxBackward, {&dy.tensor(), &y.tensor()}, SoftmaxAttrs{dim}, dy.site());
}

void register_softmax(OpTable& table);

void register_softmax(OpTable& table) {
  table.add(kSoftmax);
  table.add(kLogSoftmax);
  table.add(kSoftmaxBackward);
  table.add(kLogSoftmaxBackward);
}

}  // namespace ops

Tensor softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (options.dtype) {
      const Tensor wide = cast(x, *options.dtype);
      return cast({softmax({wide, x.site()}, dim), x.site()}, *options.dtype);
    }
    const ops::SoftmaxAttrs attrs{normalize_dim(dim, x->dim(), "softmax")};
    return dispatch(ops::kSoftmax, {&x.tensor()}, attrs, x.site());
  });
}

Tensor log_softmax(const TensorArg& x, int64_t dim, const SoftmaxOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (options.dtype) {
      const Tensor wide = cast(x, *options.dtype);
      return cast({log_softmax({wide, x.site()}, dim), x.site()}, *options.dtype);
    }
    const ops::SoftmaxAttrs attrs{normalize_dim(dim, x->dim(), "log_softmax")};
    return dispatch(ops::kLogSoftmax, {&x.tensor()}, attrs, x.site());
  });
}

Tensor ReduceMethods::softmax(int64_t dim, Site site) const {
  return flow::softmax(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::softmax(int64_t dim, const SoftmaxOptions& options, Site site) const {
  return flow::softmax(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::log_softmax(int64_t dim, Site site) const {
  return flow::log_softmax(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::log_softmax(int64_t dim, const SoftmaxOptions& options, Site site) const {
  return flow::log_softmax(TensorArg(self(), site), dim, options);
}

}  // namespace flow
