#include "ops/random/dropout.h"

#include "core/dispatch.h"
#include "ops/random/dropout_op.h"
#include "ops/sbp_rules.h"

namespace flow {
namespace ops {
namespace {

void infer_dropout(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "takes a floating dtype; cast the input");
  ctx.add_output_like(0);
  ctx.add_output(ctx.input(0).shape, DType::kBool);
}

// The op is elementwise in the logical position. It is linear and monotonic in x, because all ranks
// draw the same mask.
void sbp_dropout(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i)
    ctx.add_positional({sbp::split(i)}, {sbp::split(i), sbp::split(i)});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial}, {partial, sbp::broadcast});
}

void infer_backward(InferContext& ctx) {
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(1).dtype == DType::kBool,
            "takes a gradient and a bool mask of its shape");
  ctx.add_output_like(0);
}

void sbp_backward(SbpContext& ctx) {
  elementwise_sbp(ctx);
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

void set_masked(GradContext& ctx, const Tensor& dy, const Tensor& mask) {
  ctx.set(0, dispatch(kDropoutBackward, {&dy, &mask}, ctx.attrs<DropoutAttrs>(), Site::here()));
}

// y = x mask / (1 - p):  dx = dy mask / (1 - p)
void grad_dropout(GradContext& ctx) {
  if (ctx.dy(0).defined()) set_masked(ctx, ctx.dy(0), ctx.output(1));
}

void grad_backward(GradContext& ctx) {
  if (ctx.dy().defined() && ctx.needs(0)) set_masked(ctx, ctx.dy(), ctx.input(1));
}

}  // namespace

const OpDef kDropout{.name = "dropout",
                     .num_outputs = 2,
                     .attrs = attrs_def<DropoutAttrs>(),
                     .infer = infer_dropout,
                     .sbp = sbp_dropout,
                     .grad = grad_dropout,
                     .saved_outputs = 0b10,
                     .is_random = true};

const OpDef kDropoutBackward{.name = "dropout_backward",
                             .num_inputs = 2,
                             .attrs = attrs_def<DropoutAttrs>(),
                             .infer = infer_backward,
                             .sbp = sbp_backward,
                             .grad = grad_backward,
                             .saved_inputs = 0b10};

void register_dropout(OpTable& table);

void register_dropout(OpTable& table) {
  table.add(kDropout);
  table.add(kDropoutBackward);
}

}  // namespace ops

Tensor dropout(const TensorArg& x, const DropoutOptions& options) {
  if (!(options.p >= 0 && options.p <= 1)) {
    throw InvalidArgument(str("[dropout] p is ", options.p, "; give a probability from 0 to 1"),
                          x.site());
  }
  if (!options.training || options.p == 0) return x.tensor();
  return dispatch_multi<2>(ops::kDropout, {&x.tensor()}, ops::DropoutAttrs{options.p}, x.site())[0];
}

}  // namespace flow
