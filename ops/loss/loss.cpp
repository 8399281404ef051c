#include "ops/loss/loss.h"

#include "core/dispatch.h"
#include "core/log.h"
#include "ops/autocast.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/loss/loss_op.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {
namespace {

void check_pair(const OpContext& ctx, int x, int t) {
  ctx.check(is_floating(ctx.input(x).dtype), "takes floating dtypes; cast the operands");
  ctx.check(ctx.input(x).dtype == ctx.input(t).dtype && ctx.input(x).shape == ctx.input(t).shape,
            "input and target must have one shape and dtype");
}

void infer_loss(InferContext& ctx) {
  check_pair(ctx, 0, 1);
  if (ctx.attrs<LossAttrs>().reduces) {
    ctx.add_output(Shape(), ctx.input(0).dtype);
  } else {
    ctx.add_output_like(0);
  }
}

// Elements are independent and their losses are added.
void sbp_loss(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    ctx.add({sbp::split(i), sbp::split(i)},
            {ctx.attrs<LossAttrs>().reduces ? sbp::partial_sum : sbp::split(i)});
  }
}

void infer_backward(InferContext& ctx) {
  check_pair(ctx, 1, 2);
  ctx.check(ctx.input(0).dtype == ctx.input(1).dtype &&
                broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape, ctx.op().name) ==
                    ctx.input(1).shape,
            "the gradient must have the input's dtype and broadcast to its shape");
  ctx.add_output_like(1);
}

// Elementwise, and linear in dy.
void sbp_backward(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({sbp::partial_sum, sbp::broadcast, sbp::broadcast}, {sbp::partial_sum});
}

// Also linear in (x, t) together: the slope is 2 (x - t).
void sbp_mse_backward(SbpContext& ctx) {
  sbp_backward(ctx);
  ctx.add({sbp::broadcast, sbp::partial_sum, sbp::partial_sum}, {sbp::partial_sum});
}

Tensor slope(const OpDef& backward, const Tensor& dy, const Tensor& x, const Tensor& t,
             const LossAttrs& attrs) {
  return dispatch(backward, {&dy, &x, &t}, attrs, Site::here());
}

// f depends on x - t:  dx = dy f'(x - t),  dt = -dx
template <const OpDef& kBackward>
void grad_of_difference(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor dx = slope(kBackward, ctx.dy(), ctx.input(0), ctx.input(1), ctx.attrs<LossAttrs>());
  if (ctx.needs(0)) ctx.set(0, dx);
  if (ctx.needs(1)) ctx.set(1, neg(dx));
}

// Second derivatives by x and t of one loss; undefined for zero.
struct Curvature {
  Tensor xx;
  Tensor xt;
};

// dx = dy f_x(x, t) / count with upstream g:
// d(dy) = g f_x / count,  dx = g dy f_xx / count,  dt = g dy f_xt / count
template <const OpDef& kBackward,
          Curvature (*kCurvature)(const Tensor& x, const Tensor& t, const LossAttrs& attrs)>
void grad_of_backward(GradContext& ctx) {
  const Tensor& g = ctx.dy();
  if (!g.defined()) return;
  const auto& attrs = ctx.attrs<LossAttrs>();
  const Tensor x = ctx.input(1);
  const Tensor t = ctx.input(2);
  if (ctx.needs(0)) ctx.set(0, sum_to(slope(kBackward, g, x, t, attrs), ctx.input_meta(0)->shape));
  if (!ctx.needs(1) && !ctx.needs(2)) return;
  const Curvature curvature = kCurvature(x, t, attrs);
  const Tensor weight = div(mul(g, ctx.input(0)), static_cast<double>(attrs.count));
  if (ctx.needs(1) && curvature.xx.defined()) ctx.set(1, mul(weight, curvature.xx));
  if (ctx.needs(2) && curvature.xt.defined()) ctx.set(2, mul(weight, curvature.xt));
}

// f = (x - t)^2:  f_xx = 2 = -f_xt
void grad_mse_backward(GradContext& ctx) {
  const Tensor& g = ctx.dy();
  if (!g.defined()) return;
  const auto& attrs = ctx.attrs<LossAttrs>();
  if (ctx.needs(0)) {
    ctx.set(0, sum_to(slope(kMseLossBackward, g, ctx.input(1), ctx.input(2), attrs),
                      ctx.input_meta(0)->shape));
  }
  if (!ctx.needs(1) && !ctx.needs(2)) return;
  const Tensor dx = mul(mul(g, ctx.input(0)), 2.0 / static_cast<double>(attrs.count));
  if (ctx.needs(1)) ctx.set(1, dx);
  if (ctx.needs(2)) ctx.set(2, neg(dx));
}

// f = |x - t|: straight lines.
Curvature l1_curvature(const Tensor& /*x*/, const Tensor& /*t*/, const LossAttrs& /*attrs*/) {
  return {};
}

// f_xx = 1 / beta where |x - t| < beta, else 0; f_xt = -f_xx
Curvature smooth_l1_curvature(const Tensor& x, const Tensor& t, const LossAttrs& attrs) {
  if (attrs.parameter == 0) return {};
  const Tensor inside = lt(abs(sub(x, t)), attrs.parameter);
  const Tensor xx = div(cast(inside, x.dtype()), attrs.parameter);
  return {xx, neg(xx)};
}

// f_xx = 1 where |x - t| < delta, else 0; f_xt = -f_xx
Curvature huber_curvature(const Tensor& x, const Tensor& t, const LossAttrs& attrs) {
  const Tensor xx = cast(lt(abs(sub(x, t)), attrs.parameter), x.dtype());
  return {xx, neg(xx)};
}

// f_x = (x - t) / v with v = x (1 - x):  f_xx = (x^2 - 2 x t + t) / v^2,  f_xt = -1 / v
Curvature bce_curvature(const Tensor& x, const Tensor& t, const LossAttrs& /*attrs*/) {
  const Tensor v = mul(x, 1 - x);
  const Tensor numerator = add(mul(x, sub(x, mul(t, 2))), t);
  return {div(numerator, square(v)), neg(reciprocal(v))};
}

// f_x = sigmoid(x) - t:  f_xx = s (1 - s) with s = sigmoid(x),  f_xt = -1
Curvature bce_with_logits_curvature(const Tensor& x, const Tensor& /*t*/,
                                    const LossAttrs& /*attrs*/) {
  const Tensor s = sigmoid(x);
  return {mul(s, 1 - s), full_like(x, -1)};
}

// dx = dy f_x,  dt = dy (log(1 - x) - log(x))
void grad_bce(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const auto& attrs = ctx.attrs<LossAttrs>();
  const Tensor x = ctx.input(0);
  if (ctx.needs(0)) ctx.set(0, slope(kBceLossBackward, dy, x, ctx.input(1), attrs));
  if (ctx.needs(1)) {
    const Tensor odds = sub(log1p(neg(x)), log(x));
    ctx.set(1, mul(odds, div(dy, static_cast<double>(attrs.count))));
  }
}

// dx = dy (sigmoid(x) - t),  dt = -dy x
void grad_bce_with_logits(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const auto& attrs = ctx.attrs<LossAttrs>();
  const Tensor x = ctx.input(0);
  if (ctx.needs(0)) ctx.set(0, slope(kBceWithLogitsLossBackward, dy, x, ctx.input(1), attrs));
  if (ctx.needs(1)) ctx.set(1, mul(x, div(dy, -static_cast<double>(attrs.count))));
}

constexpr OpDef loss_def(const char* name, GradFn grad) {
  return {.name = name,
          .num_inputs = 2,
          .attrs = attrs_def<LossAttrs>(),
          .infer = infer_loss,
          .sbp = sbp_loss,
          .grad = grad,
          .saved_inputs = 0b11,
          .autocast = AutocastRule::kFloat32};
}

constexpr OpDef backward_def(const char* name, GradFn grad, SbpFn sbp = sbp_backward) {
  return {.name = name,
          .num_inputs = 3,
          .attrs = attrs_def<LossAttrs>(),
          .infer = infer_backward,
          .sbp = sbp,
          .grad = grad,
          .saved_inputs = 0b111};
}

}  // namespace

constinit const OpDef kMseLoss = loss_def("mse_loss", grad_of_difference<kMseLossBackward>);
constinit const OpDef kL1Loss = loss_def("l1_loss", grad_of_difference<kL1LossBackward>);
constinit const OpDef kSmoothL1Loss =
    loss_def("smooth_l1_loss", grad_of_difference<kSmoothL1LossBackward>);
constinit const OpDef kHuberLoss = loss_def("huber_loss", grad_of_difference<kHuberLossBackward>);
constinit const OpDef kBceLoss = loss_def("binary_cross_entropy", grad_bce);
constinit const OpDef kBceWithLogitsLoss =
    loss_def("binary_cross_entropy_with_logits", grad_bce_with_logits);

constinit const OpDef kMseLossBackward =
    backward_def("mse_loss_backward", grad_mse_backward, sbp_mse_backward);
constinit const OpDef kL1LossBackward =
    backward_def("l1_loss_backward", grad_of_backward<kL1LossBackward, l1_curvature>);
constinit const OpDef kSmoothL1LossBackward = backward_def(
    "smooth_l1_loss_backward", grad_of_backward<kSmoothL1LossBackward, smooth_l1_curvature>);
constinit const OpDef kHuberLossBackward =
    backward_def("huber_loss_backward", grad_of_backward<kHuberLossBackward, huber_curvature>);
constinit const OpDef kBceLossBackward = backward_def(
    "binary_cross_entropy_backward", grad_of_backward<kBceLossBackward, bce_curvature>);
constinit const OpDef kBceWithLogitsLossBackward =
    backward_def("binary_cross_entropy_with_logits_backward",
                 grad_of_backward<kBceWithLogitsLossBackward, bce_with_logits_curvature>);

Reduction parse_reduction(const std::string& word, const char* op) {
  if (word == "mean") return Reduction::kMean;
  if (word == "sum") return Reduction::kSum;
  if (word == "none") return Reduction::kNone;
  throw InvalidArgument(
      str("[", op, "] reduction '", word, "' is unknown; use \"mean\", \"sum\" or \"none\""));
}

void warn_of_broadcast(const char* op, const TensorArg& input, const TensorArg& target) {
  if (input->shape() == target->shape()) return;
  warn_at(input.site(), str("[", op, "] the target's shape ", target->shape(),
                            " differs from the input's, ", input->shape(),
                            ", so the loss compares every pair that broadcasting makes; give both "
                            "one shape, for example with target.view_as(input)"));
}

Tensor loss_operand(const TensorArg& x) {
  return autocast(x, AutocastRule::kFloat32);
}

Tensor reduced(const Tensor& losses, Reduction reduction, Site site) {
  if (reduction == Reduction::kNone) return losses;
  const TensorArg all(losses, site);  // whose sum may not fit 16 bits where the mean does
  return reduction == Reduction::kSum ? sum(all) : mean(all);
}

void register_loss(OpTable& table);

void register_loss(OpTable& table) {
  for (const OpDef* op :
       {&kMseLoss, &kL1Loss, &kSmoothL1Loss, &kHuberLoss, &kBceLoss, &kBceWithLogitsLoss,
        &kMseLossBackward, &kL1LossBackward, &kSmoothL1LossBackward, &kHuberLossBackward,
        &kBceLossBackward, &kBceWithLogitsLossBackward}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

using ops::loss_operand;
using ops::LossAttrs;
using ops::reduced;
using ops::Reduction;

// Computes the loss with both operands converted to one dtype and shape.
Tensor call(const OpDef& op, const TensorArg& input, const TensorArg& target, Reduction reduction,
            double parameter = 0) {
  const Tensor& x = input.tensor();
  const Tensor& t = target.tensor();
  if (x.dtype() != t.dtype()) {
    const DType dtype = promote(x.dtype(), t.dtype());  // both have dims after broadcasting
    return call(op, TensorArg(cast(input, dtype), input.site()), cast(target, dtype), reduction,
                parameter);
  }
  if (x.shape() != t.shape()) {
    const Site site = input.site();
    const Shape shape = broadcast_shapes(x.shape(), t.shape(), op.name);
    ops::warn_of_broadcast(op.name, input, target);
    return call(op, {x.expand(shape, site), site}, {t.expand(shape, site), site}, reduction,
                parameter);
  }
  const LossAttrs attrs{.reduces = reduction != Reduction::kNone,
                        .count = reduction == Reduction::kMean ? x.numel() : 1,
                        .parameter = parameter};
  return dispatch(op, {&x, &t}, attrs, input.site());
}

// The losses of an op, each multiplied by its weight.
Tensor weighted_losses(const OpDef& op, const TensorArg& input, const TensorArg& target,
                       const Tensor& weight, double parameter = 0) {
  if (weight.shape() != input->shape()) {
    throw InvalidArgument(str("[", op.name, "] weight must have the input's shape; received ",
                              input->meta(), " and ", weight.meta()),
                          input.site());
  }
  const Tensor losses = call(op, input, target, Reduction::kNone, parameter);
  return mul(TensorArg(losses, input.site()), weight);
}

Tensor difference_loss(const OpDef& op, const TensorArg& input, const TensorArg& target,
                       const LossOptions& options) {
  return ops::located(input.site(), [&] {
    const Reduction reduction = ops::parse_reduction(options.reduction, op.name);
    if (!options.weight.defined()) return call(op, input, target, reduction);
    const Tensor losses = weighted_losses(op, input, target, options.weight);
    if (reduction != Reduction::kMean) return reduced(losses, reduction, input.site());
    return div(sum(TensorArg(losses, input.site())), sum(options.weight));
  });
}

// A loss as PyTorch gives it that has the dtype of one operand, `decides`, whatever that of the
// other one.
Tensor in_dtype_of(const TensorArg& decides, const Tensor& other, const Tensor& loss) {
  return decides->dtype() == other.dtype() ? loss : cast({loss, decides.site()}, decides->dtype());
}

void check_floating(const char* function, const char* operand, const TensorArg& x) {
  if (is_floating(x->dtype())) return;
  throw InvalidArgument(str("[", function, "] has the dtype of its ", operand,
                            ", which must be floating; received ", x->meta(), "; cast it"),
                        x.site());
}

}  // namespace

Tensor mse_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options) {
  return difference_loss(ops::kMseLoss, input, target, options);
}

Tensor l1_loss(const TensorArg& input, const TensorArg& target, const LossOptions& options) {
  return difference_loss(ops::kL1Loss, input, target, options);
}

Tensor smooth_l1_loss(const TensorArg& input, const TensorArg& target,
                      const SmoothL1Options& options) {
  return ops::located(input.site(), [&]() -> Tensor {
    if (!(options.beta >= 0)) {
      throw InvalidArgument(
          str("[smooth_l1_loss] beta is ", options.beta, "; it must not be negative"),
          input.site());
    }
    return call(ops::kSmoothL1Loss, input, target,
                ops::parse_reduction(options.reduction, "smooth_l1_loss"), options.beta);
  });
}

Tensor huber_loss(const TensorArg& input, const TensorArg& target, const HuberOptions& options) {
  return ops::located(input.site(), [&]() -> Tensor {
    if (!(options.delta > 0)) {
      throw InvalidArgument(str("[huber_loss] delta is ", options.delta, "; it must be positive"),
                            input.site());
    }
    check_floating("huber_loss", "input", input);
    const Reduction reduction = ops::parse_reduction(options.reduction, "huber_loss");
    const Tensor wide_input = loss_operand(input), wide_target = loss_operand(target);
    const TensorArg x(wide_input, input.site()), t(wide_target, target.site());
    const Tensor loss =
        options.weight.defined()
            ? reduced(weighted_losses(ops::kHuberLoss, x, t, options.weight, options.delta),
                      reduction, input.site())
            : call(ops::kHuberLoss, x, t, reduction, options.delta);
    return in_dtype_of(x, t, loss);
  });
}

Tensor binary_cross_entropy(const TensorArg& input, const TensorArg& target,
                            const BceOptions& options) {
  return ops::named("binary_cross_entropy", input.site(), [&]() -> Tensor {
    const Reduction reduction = ops::parse_reduction(options.reduction, "binary_cross_entropy");
    if (input.defined() && target.defined() && input->shape() != target->shape()) {
      throw InvalidArgument(str("[binary_cross_entropy] input and target must have one shape; ",
                                "received ", input->meta(), ", ", target->meta()),
                            input.site());
    }
    if (!options.weight.defined()) return call(ops::kBceLoss, input, target, reduction);
    const Tensor losses = call(ops::kBceLoss, input, target, Reduction::kNone);
    return reduced(mul(TensorArg(losses, input.site()), options.weight), reduction, input.site());
  });
}

Tensor binary_cross_entropy_with_logits(const TensorArg& input, const TensorArg& target,
                                        const BceWithLogitsOptions& options) {
  return ops::named("binary_cross_entropy_with_logits", input.site(), [&]() -> Tensor {
    constexpr const char* kName = "binary_cross_entropy_with_logits";
    const Reduction reduction = ops::parse_reduction(options.reduction, kName);
    if (input.defined() && target.defined() && input->shape() != target->shape()) {
      throw InvalidArgument(str("[", kName, "] input and target must have one shape; received ",
                                input->meta(), ", ", target->meta()),
                            input.site());
    }
    check_floating(kName, "target", target);
    const Tensor wide_input = loss_operand(input), wide_target = loss_operand(target);
    const TensorArg x(wide_input, input.site()), t(wide_target, target.site());
    if (!options.weight.defined() && !options.pos_weight.defined()) {
      return in_dtype_of(t, x, call(ops::kBceWithLogitsLoss, x, t, reduction));
    }
    Tensor losses = call(ops::kBceWithLogitsLoss, x, t, Reduction::kNone);
    const auto as_losses = [&](const Tensor& weight) {
      return cast({weight, input.site()}, losses.dtype());
    };
    if (options.pos_weight.defined()) {
      // The target's term is t log(1 + exp(-x)), which is the loss at t = 1 times t.
      const Tensor positive = call(ops::kBceWithLogitsLoss, x, ones_like(x), Reduction::kNone);
      const Tensor weight = as_losses(options.pos_weight);
      losses = add(losses, mul(mul(t, sub(weight, 1)), positive));
    }
    if (options.weight.defined())
      losses = mul(TensorArg(losses, input.site()), as_losses(options.weight));
    return in_dtype_of(t, x, reduced(losses, reduction, input.site()));
  });
}

Tensor kl_div(const TensorArg& input, const TensorArg& target, const KlDivOptions& options) {
  return ops::named("kl_div", input.site(), [&]() -> Tensor {
    ops::warn_of_broadcast("kl_div", input, target);
    const Tensor log_q = loss_operand(input), p = loss_operand(target);
    const Tensor losses = options.log_target
                              ? mul(exp(p), sub(p, log_q))
                              // x log(x) with its limit at 0, whose gradient must not meet log(0).
                              : sub(mul(p, log(where(ne(p, 0), p, ones_like(p)))), mul(p, log_q));
    if (options.reduction == "batchmean") {
      const int64_t batch = input->dim() == 0 ? 1 : input->size(0);
      return div(sum(TensorArg(losses, input.site())), static_cast<double>(batch));
    }
    return reduced(losses, ops::parse_reduction(options.reduction, "kl_div"), input.site());
  });
}

}  // namespace flow
