#include "ops/loss/ctc_loss.h"

#include <numeric>

#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "ops/autocast.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/loss/ctc_loss_op.h"
#include "ops/loss/loss_op.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

// `first` is the position of log_probs.
void check(InferContext& ctx, int first) {
  const TensorMeta& log_probs = ctx.input(first);
  ctx.check(is_floating(log_probs.dtype) && log_probs.dim() == 3,
            "log_probs must be floating (T, N, C)");
  const int64_t batch = log_probs.shape[1];
  const int64_t blank = ctx.attrs<CtcAttrs>().blank;
  ctx.check(blank >= 0 && blank < log_probs.shape[2], "blank is ", blank,
            "; give one of the classes");
  ctx.check(ctx.input(first + 1).dim() == 2 && ctx.input(first + 1).shape[0] == batch,
            "targets must be (N, S), or in one vector");
  for (int i = first + 2; i < first + 4; ++i) {
    ctx.check(ctx.input(i).dim() == 1 && ctx.input(i).shape[0] == batch,
              "input_lengths and target_lengths must have one length for each sample");
  }
  for (int i = first + 1; i < first + 4; ++i)
    ctx.check(ctx.input(i).dtype == DType::kInt64, "targets and lengths must be integers");
}

void infer_loss(InferContext& ctx) {
  check(ctx, 0);
  ctx.add_output({ctx.input(0).shape[1]}, ctx.input(0).dtype);
}

void infer_backward(InferContext& ctx) {
  check(ctx, 1);
  ctx.check(ctx.input(0).shape == Shape{ctx.input(1).shape[1]} &&
                ctx.input(0).dtype == ctx.input(1).dtype,
            "the gradient must have one number for each sample");
  ctx.add_output_like(1);
}

// Samples are independent of each other.
void sbp_loss(SbpContext& ctx) {
  const Sbp first = sbp::split(0);
  ctx.add({sbp::split(1), first, first, first}, {first});
}

// Linear in dy.
void sbp_backward(SbpContext& ctx) {
  const Sbp first = sbp::split(0);
  const Sbp whole = sbp::broadcast;
  ctx.add({first, sbp::split(1), first, first, first}, {sbp::split(1)});
  ctx.add({sbp::partial_sum, whole, whole, whole, whole}, {sbp::partial_sum});
}

// dx = dy (exp(x) - the probability of each class at each time, given the target)
void grad_loss(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(0)) return;
  const Tensor x = ctx.input(0);
  const Tensor targets = ctx.input(1);
  const Tensor input_lengths = ctx.input(2);
  const Tensor target_lengths = ctx.input(3);
  const Tensor dy = ctx.dy();
  ctx.set(0, dispatch(kCtcLossBackward, {&dy, &x, &targets, &input_lengths, &target_lengths},
                      ctx.attrs<CtcAttrs>(), Site::none()));
}

// Two additions of logarithms for each of 2 S + 1 states at each time.
Cost cost(const SbpContext& ctx) {
  const bool is_backward = ctx.num_inputs() == 5;
  const TensorMeta& x = ctx.input(is_backward ? 1 : 0);
  const TensorMeta& targets = ctx.input(is_backward ? 2 : 1);
  const auto states = static_cast<double>(2 * targets.shape[1] + 1);
  return {.flops = (is_backward ? 80 : 40) * states * static_cast<double>(x.shape[0]) *
                   static_cast<double>(x.shape[1])};
}

}  // namespace

const OpDef kCtcLoss = in_float32({.name = "ctc_loss",
                                   .num_inputs = 4,
                                   .attrs = attrs_def<CtcAttrs>(),
                                   .infer = infer_loss,
                                   .sbp = sbp_loss,
                                   .grad = grad_loss,
                                   .cost = cost,
                                   .saved_inputs = 0b1111});
const OpDef kCtcLossBackward = {.name = "ctc_loss_backward",
                                .num_inputs = 5,
                                .attrs = attrs_def<CtcAttrs>(),
                                .infer = infer_backward,
                                .sbp = sbp_backward,
                                .grad = not_twice_differentiable,
                                .cost = cost};

void register_ctc_loss(OpTable& table) {
  table.add(kCtcLoss);
  table.add(kCtcLossBackward);
}

namespace {

// The targets of one vector as rows, each as long as the vector; the elements after a target are
// not read.
Tensor as_rows(const TensorArg& targets, const TensorArg& lengths) {
  const Site site = targets.site();
  if (targets->numel() == 0) return new_zeros(targets, {lengths->numel(), 0});
  const TensorOptions layout = ops::whole_like(targets);
  const Tensor starts = sub({cumsum(lengths, 0), site}, lengths);
  const Tensor within = arange(targets->numel(), layout, site);
  const Tensor places = add({unsqueeze({starts, site}, 1), site}, within);
  const Tensor inside = clamp({places, site}, {.max = targets->numel() - 1});
  const Tensor picked = index_select(targets, 0, {reshape({inside, site}, {-1}), site});
  return reshape({picked, site}, {lengths->numel(), targets->numel()});
}

// Throws InvalidArgument unless the targets in one vector are as many as their lengths in all.
void check_total(const TensorArg& targets, int64_t total, Site site) {
  if (total == targets->numel()) return;
  throw InvalidArgument(
      str("[ctc_loss] target_lengths add up to ", total, ", but the targets in one vector are ",
          targets->numel(), "; give the length of each target, or targets as (N, S)"),
      site);
}

}  // namespace

}  // namespace ops

Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const TensorArg& input_lengths, const TensorArg& target_lengths,
                const CtcOptions& options) {
  return ops::named("ctc_loss", log_probs.site(), [&]() -> Tensor {
    const Site site = log_probs.site();
    const auto reduction = ops::parse_reduction(options.reduction, "ctc_loss");
    const bool is_batch = log_probs->dim() == 3;
    if (is_floating(targets->dtype()) || is_floating(input_lengths->dtype()) ||
        is_floating(target_lengths->dtype())) {
      throw InvalidArgument(
          str("[ctc_loss] targets and lengths must be integers; received ", targets->meta(), ", ",
              input_lengths->meta(), ", ", target_lengths->meta(), "; cast them"),
          site);
    }
    Tensor x = log_probs;
    Tensor labels = cast(targets, DType::kInt64);
    Tensor times = cast(input_lengths, DType::kInt64);
    Tensor sizes = cast(target_lengths, DType::kInt64);
    if (times.dim() == 0) times = reshape({times, site}, {1});
    if (sizes.dim() == 0) sizes = reshape({sizes, site}, {1});
    if (log_probs->dim() == 2) {
      x = unsqueeze({x, site}, 1);
      if (labels.dim() == 1) labels = unsqueeze({labels, site}, 0);
    }
    if (labels.dim() == 1) {
      if (thread_state().trace == nullptr) {  // a trace has no values to look at
        ops::check_total(targets, sum({sizes, site}).item<int64_t>(site), site);
      }
      labels = ops::as_rows({labels, site}, {sizes, site});
    }
    const ops::CtcAttrs attrs{options.blank, options.zero_infinity};
    Tensor losses = dispatch(ops::kCtcLoss, {&x, &labels, &times, &sizes}, attrs, site);
    if (reduction == ops::Reduction::kMean) {
      const Tensor labelled = cast({clamp({sizes, site}, {.min = 1}), site}, losses.dtype());
      losses = div({losses, site}, labelled);
    }
    if (!is_batch) losses = squeeze({losses, site}, 0);
    return ops::reduced(losses, reduction, site);
  });
}

Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets,
                const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CtcOptions& options) {
  const Site site = log_probs.site();
  if (targets->dim() == 1 && log_probs->dim() == 3) {
    const auto total = std::accumulate(target_lengths.begin(), target_lengths.end(), int64_t{0});
    ops::check_total(targets, total, site);
  }
  const TensorOptions layout = ops::whole_like(targets, DType::kInt64);
  const auto as_tensor = [&](const std::vector<int64_t>& lengths) {
    return tensor(lengths, {static_cast<int64_t>(lengths.size())}, layout, site);
  };
  const Tensor times = as_tensor(input_lengths);
  const Tensor sizes = as_tensor(target_lengths);
  return ctc_loss(log_probs, targets, {times, site}, {sizes, site}, options);
}

}  // namespace flow
