#include "ops/loss/cross_entropy.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/loss/cross_entropy_op.h"
#include "ops/loss/loss_op.h"
#include "ops/named_errors.h"
#include "ops/norm/softmax.h"
#include "ops/norm/softmax_op.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {

bool parts_agree(const TensorMeta& target, const TensorMeta* x,
                 std::initializer_list<const TensorMeta*> losses) {
  if (x != nullptr) {
    Shape without_classes = x->local_shape;
    without_classes.erase(class_dim(x->dim() - 1));
    if (!(without_classes == target.local_shape)) return false;
  }
  return std::all_of(losses.begin(), losses.end(), [&](const TensorMeta* loss) {
    return loss->shape.empty() || loss->local_shape == target.local_shape;
  });
}

namespace {

DType loss_dtype(DType input) {
  return is_half(input) ? DType::kFloat32 : input;
}

void check_target(const OpContext& ctx, int target) {
  const DType dtype = ctx.input(target).dtype;
  ctx.check(dtype == DType::kInt64 || dtype == DType::kInt32,
            "class targets must be int64 or int32; cast the target");
}

void check_weight(const OpContext& ctx, int weight) {
  const auto& attrs = ctx.attrs<ClassLossAttrs>();
  ctx.check(!ctx.has_input(weight) || (ctx.input(weight).shape == Shape{attrs.num_classes} &&
                                       ctx.input(weight).dtype == attrs.dtype),
            "weight must have one element for each of the ", attrs.num_classes,
            " classes, of dtype ", attrs.dtype);
}

// x (N, C, d...) with target (N, d...).
void check_input(const OpContext& ctx, int x, int target) {
  const Shape& shape = ctx.input(x).shape;
  ctx.check(is_floating(ctx.input(x).dtype), "takes a floating input; cast it");
  ctx.check(!shape.empty(), "input needs a class dim");
  Shape expected = shape;
  expected.erase(shape.size() == 1 ? 0 : 1);
  ctx.check(ctx.input(target).shape == expected, "target must be of shape ", expected,
            ", the input's without its class dim");
  check_target(ctx, target);
}

// A loss per target, or their sum.
void add_losses(InferContext& ctx, int target) {
  const auto& attrs = ctx.attrs<ClassLossAttrs>();
  ctx.add_output(attrs.reduces ? Shape() : ctx.input(target).shape, loss_dtype(attrs.dtype));
}

Sbp sum_or(const SbpContext& ctx, int64_t dim) {
  return ctx.attrs<ClassLossAttrs>().reduces ? sbp::partial_sum : sbp::split(dim);
}

// A gradient of the losses: split like the losses, or whole if it is the gradient of their sum.
Sbp gradient_split(const SbpContext& ctx, int dy, int target, int64_t dim) {
  return ctx.input(dy).dim() == ctx.input(target).dim() ? sbp::split(dim) : sbp::broadcast;
}

// ---- weights of targets

void infer_target_weight(InferContext& ctx) {
  check_target(ctx, 0);
  check_weight(ctx, 1);
  add_losses(ctx, 0);
}

// Returns true if each loss is one element and not a sum of several.
bool keeps_elements(const SbpContext& ctx, int target) {
  return !ctx.attrs<ClassLossAttrs>().reduces || ctx.input(target).dim() == 0;
}

// Targets are independent. The op is linear in the weights, of which a rank may hold some, and
// increasing.
void sbp_target_weight(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i)
    ctx.add({sbp::split(i), sbp::broadcast}, {sum_or(ctx, i)});
  if (!ctx.has_input(1)) return;
  ctx.add_positional({sbp::broadcast, sbp::split(0)}, {sbp::partial_sum});
  ctx.add({sbp::broadcast, sbp::partial_sum}, {sbp::partial_sum});
  if (!keeps_elements(ctx, 0)) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, partial}, {partial});
}

Tensor target_weight(const Tensor& target, const Tensor& weight, ClassLossAttrs attrs, bool reduces,
                     Site site) {
  attrs.reduces = reduces;
  return dispatch(kTargetWeight, {&target, &weight}, attrs, site);
}

// ---- nll_loss

void infer_nll(InferContext& ctx) {
  check_input(ctx, 0, 1);
  check_weight(ctx, 2);
  add_losses(ctx, 1);
}

// Input 0 is only negated and selected, so its maxima become minima.
void add_negated(SbpContext& ctx) {
  ctx.add({sbp::partial_max, sbp::broadcast, sbp::broadcast}, {sbp::partial_min});
  ctx.add({sbp::partial_min, sbp::broadcast, sbp::broadcast}, {sbp::partial_max});
}

// Targets are independent. The op is linear in logp and in the weights; each rank adds those of its
// classes.
void sbp_nll(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t classes = class_dim(ctx.input(1).dim());
  for (int64_t i = 0; i < ctx.input(1).dim(); ++i)
    ctx.add({split(input_dim(i)), split(i), broadcast}, {sum_or(ctx, i)});
  ctx.add_positional({split(classes), broadcast, broadcast}, {partial_sum});
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum});
  if (!ctx.has_input(2)) {
    if (keeps_elements(ctx, 1)) add_negated(ctx);
    return;
  }
  ctx.add_positional({split(classes), broadcast, split(0)}, {partial_sum});
  ctx.add_positional({broadcast, broadcast, split(0)}, {partial_sum});
  ctx.add({broadcast, broadcast, partial_sum}, {partial_sum});
}

Tensor nll(const Tensor& logp, const Tensor& target, const Tensor& weight,
           const ClassLossAttrs& attrs, Site site = Site::here()) {
  return dispatch(kNllLoss, {&logp, &target, &weight}, attrs, site);
}

// dlogp = -weight[t] dy at the target, 0 elsewhere
void grad_nll(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(0)) return;
  const Tensor target = ctx.input(1);
  const Tensor weight = ctx.input_meta(2) != nullptr ? ctx.input(2) : Tensor();
  ctx.set(0, dispatch(kNllLossBackward, {&ctx.dy(), &target, &weight}, ctx.attrs<ClassLossAttrs>(),
                      Site::here()));
}

void check_gradient(const OpContext& ctx, int dy, int target) {
  const auto& attrs = ctx.attrs<ClassLossAttrs>();
  ctx.check(ctx.input(dy).dtype == loss_dtype(attrs.dtype) &&
                (ctx.input(dy).shape.empty() || ctx.input(dy).shape == ctx.input(target).shape),
            "the gradient must be a scalar or of the target's shape");
}

void infer_nll_backward(InferContext& ctx) {
  check_target(ctx, 1);
  check_gradient(ctx, 0, 1);
  check_weight(ctx, 2);
  const auto& attrs = ctx.attrs<ClassLossAttrs>();
  Shape shape = ctx.input(1).shape;
  shape.insert(class_dim(shape.size()), attrs.num_classes);
  ctx.add_output(shape, attrs.dtype);
}

// The same as nll_loss. A rank can also write the gradient of its classes alone.
void sbp_nll_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t classes = class_dim(ctx.input(1).dim());
  for (int64_t i = 0; i < ctx.input(1).dim(); ++i) {
    ctx.add({gradient_split(ctx, 0, 1, i), split(i), broadcast}, {split(input_dim(i))});
  }
  ctx.add_positional({broadcast, broadcast, broadcast}, {split(classes)});
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum});
  if (!ctx.has_input(2)) {
    add_negated(ctx);
    return;
  }
  ctx.add_positional({broadcast, broadcast, split(0)}, {split(classes)});
  ctx.add_positional({broadcast, broadcast, split(0)}, {partial_sum});
  ctx.add({broadcast, broadcast, partial_sum}, {partial_sum});
}

// The op is linear in dy: its gradient is the loss of the upstream gradient.
void grad_nll_backward(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(0)) return;
  ClassLossAttrs attrs = ctx.attrs<ClassLossAttrs>();
  attrs.reduces = ctx.input_meta(0)->dim() != ctx.input_meta(1)->dim();
  const Tensor weight = ctx.input_meta(2) != nullptr ? ctx.input(2) : Tensor();
  ctx.set(0, nll(ctx.dy(), ctx.input(1), weight, attrs));
}

// ---- cross_entropy

void infer_cross_entropy(InferContext& ctx) {
  check_input(ctx, 0, 1);
  check_weight(ctx, 2);
  add_losses(ctx, 1);
  ctx.add_output(ctx.input(1).shape, loss_dtype(ctx.attrs<ClassLossAttrs>().dtype));
}

// Targets are independent. The op is linear in the weights, and increasing because logsumexp(x) >=
// x.
void sbp_cross_entropy(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  for (int64_t i = 0; i < ctx.input(1).dim(); ++i)
    ctx.add({split(input_dim(i)), split(i), broadcast}, {sum_or(ctx, i), split(i)});
  if (!ctx.has_input(2)) return;
  ctx.add_positional({broadcast, broadcast, split(0)}, {partial_sum, broadcast});
  ctx.add({broadcast, broadcast, partial_sum}, {partial_sum, broadcast});
  if (!keeps_elements(ctx, 1) || ctx.attrs<ClassLossAttrs>().label_smoothing != 0) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({broadcast, broadcast, partial}, {partial, broadcast});
}

Tensor cross_entropy_backward(const Tensor& dy, const Tensor& x, const Tensor& target,
                              const Tensor& lse, const Tensor& weight,
                              const ClassLossAttrs& attrs) {
  return dispatch(kCrossEntropyBackward, {&dy, &x, &target, &lse, &weight}, attrs, Site::here());
}

// softmax(x) from logsumexp(x), in the dtype of the losses.
Tensor probabilities(const Tensor& x, const Tensor& lse) {
  return exp(sub(x.to(lse.dtype()), lse.unsqueeze(class_dim(lse.dim()))));
}

// With q the weighted target distribution and w = sum(q):  loss = w lse - sum(q x), so
// dx = dy (w softmax(x) - q) + dlse softmax(x)
void grad_cross_entropy(GradContext& ctx) {
  if (!ctx.needs(0)) return;
  const Tensor x = ctx.input(0);
  const Tensor lse = ctx.output(1);
  Tensor dx;
  if (ctx.dy(0).defined()) {
    const Tensor weight = ctx.input_meta(2) != nullptr ? ctx.input(2) : Tensor();
    dx = cross_entropy_backward(ctx.dy(0), x, ctx.input(1), lse, weight,
                                ctx.attrs<ClassLossAttrs>());
  }
  if (ctx.dy(1).defined()) {
    const Tensor dlse = ctx.dy(1).unsqueeze(class_dim(lse.dim()));
    const Tensor through_lse = mul(probabilities(x, lse), dlse).to(x.dtype());
    dx = dx.defined() ? add(dx, through_lse) : through_lse;
  }
  if (dx.defined()) ctx.set(0, dx);
}

void infer_cross_entropy_backward(InferContext& ctx) {
  check_input(ctx, 1, 2);
  check_gradient(ctx, 0, 2);
  check_weight(ctx, 4);
  ctx.add_output_like(1);
}

// Given logsumexp, elements of x are independent too. The op is linear in dy and in the weights.
void sbp_cross_entropy_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t classes = class_dim(ctx.input(2).dim());
  for (int64_t i = 0; i < ctx.input(2).dim(); ++i) {
    ctx.add({gradient_split(ctx, 0, 2, i), split(input_dim(i)), split(i), split(i), broadcast},
            {split(input_dim(i))});
  }
  ctx.add_positional({broadcast, split(classes), broadcast, broadcast, broadcast},
                     {split(classes)});
  ctx.add({partial_sum, broadcast, broadcast, broadcast, broadcast}, {partial_sum});
  if (!ctx.has_input(4)) return;
  ctx.add_positional({broadcast, broadcast, broadcast, broadcast, split(0)}, {partial_sum});
  ctx.add({broadcast, broadcast, broadcast, broadcast, partial_sum}, {partial_sum});
}

// dx = dy (w p - q) with p = exp(x - lse) and upstream g:  d(dy) = sum(g (w p - q)) over classes,
// dx = g dy w p,  dlse = -sum(g dy w p) over classes
void grad_cross_entropy_backward(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<ClassLossAttrs>();
  const Tensor x = ctx.input(1);
  const Tensor target = ctx.input(2);
  const Tensor lse = ctx.input(3);
  const Tensor weight = ctx.input_meta(4) != nullptr ? ctx.input(4) : Tensor();
  const int64_t classes = class_dim(lse.dim());
  const Tensor g = ctx.dy().to(lse.dtype());
  if (ctx.needs(0)) {
    const Tensor slope = cross_entropy_backward(ones_like(lse), x, target, lse, weight, attrs);
    ctx.set(0, sum_to(sum(mul(g, slope.to(lse.dtype())), classes), ctx.input_meta(0)->shape));
  }
  if (!ctx.needs(1) && !ctx.needs(3)) return;
  Tensor w = target_weight(target, weight, attrs, false, Site::here());
  if (attrs.label_smoothing != 0 && weight.defined()) {
    const Tensor counted = target_weight(target, Tensor(), attrs, false, Site::here());
    const double even = attrs.label_smoothing / static_cast<double>(attrs.num_classes);
    w = add(mul(w, 1 - attrs.label_smoothing),
            mul(counted, mul(sum(weight).to(lse.dtype()), even)));
  }
  const Tensor factor = mul(ctx.input(0), w).unsqueeze(classes);
  const Tensor dx = mul(g, mul(probabilities(x, lse), factor));
  if (ctx.needs(1)) ctx.set(1, dx.to(x.dtype()));
  if (ctx.needs(3)) ctx.set(3, neg(sum(dx, classes)));
}

// If the classes are split, each rank reads the targets among its own classes: loss = nll(x - m -
// log(s)).
bool decompose_cross_entropy(const DecomposeContext& ctx, const SbpContext& sbp, Tensor* outputs) {
  const auto& attrs = sbp.attrs<ClassLossAttrs>();
  const int64_t classes = class_dim(sbp.input(1).dim());
  if (outputs == nullptr) {
    return attrs.label_smoothing == 0 && pays_to_split_softmax(sbp.input(0), classes);
  }
  const SplitSoftmax pieces = split_softmax(TensorArg(*ctx.inputs[0], ctx.site), classes);
  const Tensor log_sum = log(pieces.sum);
  const Tensor logp = sub(pieces.shifted, log_sum);
  const Tensor weight = ctx.inputs[2]->defined() ? cast(*ctx.inputs[2], logp.dtype()) : Tensor();
  ClassLossAttrs wide = attrs;
  wide.dtype = logp.dtype();
  outputs[0] = nll(logp, *ctx.inputs[1], weight, wide, ctx.site);
  outputs[1] = squeeze(add(pieces.max, log_sum), classes);
  return true;
}

Cost cost(const SbpContext& ctx) {
  constexpr double kFlopsPerElement = 20;  // as softmax
  return {.flops = kFlopsPerElement * static_cast<double>(ctx.input(0).numel)};
}

}  // namespace

const OpDef kNllLoss{.name = "nll_loss",
                     .num_inputs = 3,
                     .attrs = attrs_def<ClassLossAttrs>(),
                     .infer = infer_nll,
                     .sbp = sbp_nll,
                     .grad = grad_nll,
                     .saved_inputs = 0b110,
                     .autocast = AutocastRule::kFloat32};

const OpDef kNllLossBackward{.name = "nll_loss_backward",
                             .num_inputs = 3,
                             .attrs = attrs_def<ClassLossAttrs>(),
                             .infer = infer_nll_backward,
                             .sbp = sbp_nll_backward,
                             .grad = grad_nll_backward,
                             .saved_inputs = 0b110};

const OpDef kCrossEntropy{.name = "cross_entropy",
                          .num_inputs = 3,
                          .num_outputs = 2,
                          .attrs = attrs_def<ClassLossAttrs>(),
                          .infer = infer_cross_entropy,
                          .sbp = sbp_cross_entropy,
                          .grad = grad_cross_entropy,
                          .cost = cost,
                          .decompose = decompose_cross_entropy,
                          .saved_inputs = 0b111,
                          .saved_outputs = 0b10};

const OpDef kCrossEntropyBackward{.name = "cross_entropy_backward",
                                  .num_inputs = 5,
                                  .attrs = attrs_def<ClassLossAttrs>(),
                                  .infer = infer_cross_entropy_backward,
                                  .sbp = sbp_cross_entropy_backward,
                                  .grad = grad_cross_entropy_backward,
                                  .saved_inputs = 0b11111};

const OpDef kTargetWeight{.name = "target_weight",
                          .num_inputs = 2,
                          .attrs = attrs_def<ClassLossAttrs>(),
                          .infer = infer_target_weight,
                          .sbp = sbp_target_weight,
                          .grad = not_differentiable};

void register_cross_entropy(OpTable& table);

void register_cross_entropy(OpTable& table) {
  table.add(kNllLoss);
  table.add(kNllLossBackward);
  table.add(kCrossEntropy);
  table.add(kCrossEntropyBackward);
  table.add(kTargetWeight);
}

}  // namespace ops

namespace {

using ops::ClassLossAttrs;
using ops::Reduction;

ClassLossAttrs class_loss_attrs(const char* op, const Tensor& input, const Tensor& weight,
                                int64_t ignore_index, double label_smoothing, Reduction reduction) {
  if (input.dim() == 0) {
    throw InvalidArgument(str("[", op, "] input needs a class dim; received ", input.meta()));
  }
  if (weight.defined() && weight.requires_grad()) {
    throw InvalidArgument(str("[", op, "] class weights have no gradient; pass weight.detach()"));
  }
  return {.reduces = reduction != Reduction::kNone,
          .label_smoothing = label_smoothing,
          .num_classes = input.size(input.dim() == 1 ? 0 : 1),
          .ignore_index = ignore_index,
          .dtype = input.dtype()};
}

// Divides a sum by the sum of its weights, which depend on the targets only.
Tensor finish(const Tensor& loss, const Tensor& target, const Tensor& weight,
              const ClassLossAttrs& attrs, Reduction reduction, DType dtype, Site site) {
  Tensor result = loss;
  if (reduction == Reduction::kMean) {
    result = div(TensorArg(loss, site), ops::target_weight(target, weight, attrs, true, site));
  }
  return result.dtype() == dtype ? result : cast(TensorArg(result, site), dtype);
}

// Targets that are distributions: -sum(q log_softmax(x)).
Tensor distribution_cross_entropy(const TensorArg& input, const Tensor& target,
                                  const CrossEntropyOptions& options, Reduction reduction) {
  const Tensor& x = input.tensor();
  if (target.shape() != x.shape()) {
    throw InvalidArgument(str("[cross_entropy] a floating target must have the input's shape; ",
                              "received ", x.meta(), ", ", target.meta()),
                          input.site());
  }
  if (options.ignore_index >= 0) {
    throw InvalidArgument(str("[cross_entropy] ignore_index is ", options.ignore_index,
                              "; it names classes, and the target is floating; leave it out"),
                          input.site());
  }
  const int64_t classes = x.dim() == 1 ? 0 : 1;
  const auto num_classes = static_cast<double>(x.size(classes));
  Tensor q = target;
  if (options.label_smoothing != 0) {
    q = add(mul(q, 1 - options.label_smoothing), options.label_smoothing / num_classes);
  }
  if (options.weight.defined()) {
    Shape shape = Shape::filled(x.dim(), 1);
    shape[classes] = x.size(classes);
    q = mul(q, options.weight.reshape(shape));
  }
  Tensor losses = neg(sum(mul(log_softmax(input, classes), q), classes));
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? sum(losses) : mean(losses);
}

// Whether autocast leaves the logits alone: the op computes 16-bit logits in float32 and gives a
// float32 loss. The CPU's kernels of 16-bit types are slower than a cast, and those of a device are
// faster. Weights have the dtype of the logits.
bool reads_as_given(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  return x.device() != DeviceType::kCpu && !is_floating(target.dtype()) &&
         !options.weight.defined();
}

}  // namespace

Tensor nll_loss(const TensorArg& input, const TensorArg& target, const NllLossOptions& options) {
  return ops::located(input.site(), [&]() -> Tensor {
    const Reduction reduction = ops::parse_reduction(options.reduction, "nll_loss");
    const Tensor x = ops::autocast(input, ops::kNllLoss.autocast);
    const ClassLossAttrs attrs =
        class_loss_attrs("nll_loss", x, options.weight, options.ignore_index, 0, reduction);
    const Tensor loss = ops::nll(x, target.tensor(), options.weight, attrs, input.site());
    return finish(loss, target, options.weight, attrs, reduction, x.dtype(), input.site());
  });
}

Tensor cross_entropy(const TensorArg& input, const TensorArg& target,
                     const CrossEntropyOptions& options) {
  return ops::located(input.site(), [&]() -> Tensor {
    const Reduction reduction = ops::parse_reduction(options.reduction, "cross_entropy");
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
      throw InvalidArgument(str("[cross_entropy] label_smoothing is ", options.label_smoothing,
                                "; it must be between 0 and 1"),
                            input.site());
    }
    const bool is_autocast = thread_state().autocast != nullptr;
    const Tensor x = reads_as_given(input.tensor(), target.tensor(), options)
                         ? input.tensor()
                         : ops::autocast(input, AutocastRule::kFloat32);
    const ClassLossAttrs attrs =
        class_loss_attrs("cross_entropy", x, options.weight, options.ignore_index,
                         options.label_smoothing, reduction);
    if (is_floating(target->dtype())) {
      return distribution_cross_entropy({x, input.site()}, target, options, reduction);
    }
    const Tensor loss = dispatch_multi<2>(
        ops::kCrossEntropy, {&x, &target.tensor(), &options.weight}, attrs, input.site())[0];
    const DType dtype = is_autocast ? loss.dtype() : x.dtype();
    return finish(loss, target, options.weight, attrs, reduction, dtype, input.site());
  });
}

}  // namespace flow
