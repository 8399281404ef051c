#include "boxing/redistribute.h"

#include <algorithm>
#include <utility>

#include "boxing/layout.h"
#include "boxing/local_shapes.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/dispatch.h"
#include "core/grad_mode.h"
#include "core/view_link.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"

namespace flow {

namespace boxing {

namespace {

// ---------------------------------------------------------------- redistribute

void redistribute_infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<RedistributeAttrs>();
  const TensorMeta& x = ctx.input(0);
  ctx.check(x.is_global(), "a local tensor has no layout to change; use to_global");
  if (!attrs.grad_sbp.empty()) {
    ctx.check(attrs.grad_sbp.size() == x.placement.num_axes(), "grad_sbp ", attrs.grad_sbp,
              " needs one entry per axis of the source's placement");
    for (const Sbp& entry : attrs.grad_sbp) {
      ctx.check(!entry.is_split() || entry.dim() < x.shape.size(), "grad_sbp ", attrs.grad_sbp,
                " splits a dim that a tensor of shape ", x.shape, " does not have");
    }
  }
  ctx.add_output({.shape = x.shape,
                  .dtype = x.dtype,
                  .placement = attrs.placement,
                  .nd_sbp = attrs.nd_sbp,
                  .device = attrs.placement.device_type(),
                  .has_layout = true});
}

// The result shares memory if every rank holds the same box before and after.
bool redistribute_view(const TensorMeta& input, const Shape& /*output*/, const void* attrs,
                       ViewSpec& view) {
  const auto& a = *static_cast<const RedistributeAttrs*>(attrs);
  const Layout from{input.placement, input.nd_sbp};
  if (!same_parts(from, {a.placement, a.nd_sbp})) return false;
  view.strides = input.strides;
  return true;
}

// y and x are the same logical value, so dx = dy. The layout of dx is the dual of x's layout, or
// grad_sbp.
void redistribute_grad(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!ctx.needs(0) || !dy.defined()) return;
  const TensorMeta& x = *ctx.input_meta(0);
  const NdSbp& wanted = ctx.attrs<RedistributeAttrs>().grad_sbp;
  const NdSbp nd_sbp =
      wanted.empty() ? gradient_sbp({x.placement, x.nd_sbp}, {dy.placement(), dy.sbp()}) : wanted;
  ctx.set(0, dy.to_global({.placement = x.placement, .sbp = nd_sbp}));
}

// ---------------------------------------------------------------- all_reduce_mean

void all_reduce_mean_infer(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  const bool is_sum = x.is_global() && std::all_of(x.nd_sbp.begin(), x.nd_sbp.end(), [](Sbp entry) {
                        return entry == sbp::partial_sum;
                      });
  ctx.check(is_sum, "the tensor must be a partial sum along all axes of its placement; received ",
            x);
  ctx.check(is_floating(x.dtype), "only floating-point tensors have a mean; received ", x.dtype);
  ctx.add_output({.shape = x.shape,
                  .dtype = x.dtype,
                  .placement = x.placement,
                  .nd_sbp = NdSbp::broadcast(x.placement.num_axes()),
                  .device = x.device,
                  .has_layout = true});
}

// y = x / n for n addends, so dx = dy / n.
void all_reduce_mean_grad(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!ctx.needs(0) || !dy.defined()) return;
  ctx.set(0, div(dy, static_cast<double>(ctx.input_meta(0)->placement.num_ranks())));
}

// ---------------------------------------------------------------- local_to_global

void local_to_global_infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<LocalToGlobalAttrs>();
  const TensorMeta& x = ctx.input(0);
  ctx.check(!x.is_global(), "the tensor is global already; use to_global");
  ctx.add_output({.shape = attrs.shape,
                  .dtype = x.dtype,
                  .placement = attrs.placement,
                  .nd_sbp = attrs.nd_sbp,
                  .device = attrs.placement.device_type(),
                  .has_layout = true});
}

bool local_to_global_view(const TensorMeta& input, const Shape& /*output*/, const void* attrs,
                          ViewSpec& view) {
  const auto& a = *static_cast<const LocalToGlobalAttrs*>(attrs);
  if (input.device != a.placement.device_type()) return false;
  if (a.sends_first && has_replicas({a.placement, a.nd_sbp})) return false;
  view.strides = input.strides;
  return true;
}

ToGlobalOptions reduced_layout(const LocalToGlobalAttrs& attrs) {
  return {.placement = attrs.placement, .sbp = without_partial(attrs.nd_sbp, sbp::broadcast)};
}

// Returns this rank's part of a gradient. A tensor of a rank outside the placement was ignored. Its
// gradient is zero, so that such a rank takes the same part in backward of what made it.
Tensor local_gradient(const Tensor& whole, const TensorMeta& x) {
  Tensor part = whole.to_local();
  if (part.shape() == x.shape || whole.placement().contains(env::rank())) return part;
  return zeros(x.shape, {.dtype = x.dtype, .device = str(x.device)});
}

// Along split axes, a part's gradient is its part of dy. Along broadcast axes, every part
// represents the one value and gets all of dy. Each addend of a sum gets dy.
void local_to_global_grad(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!ctx.needs(0) || !dy.defined()) return;
  const Tensor whole = dy.to_global(reduced_layout(ctx.attrs<LocalToGlobalAttrs>()));
  ctx.set(0, local_gradient(whole, *ctx.input_meta(0)));
}

// y = max over ranks of x: dy goes to the ranks whose x equals y; ties share it equally.
// dx = dy * [x == y] / (number of ranks with x == y)
void candidates_to_global_grad(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!ctx.needs(0) || !dy.defined()) return;
  const auto& attrs = ctx.attrs<LocalToGlobalAttrs>();
  const auto has = [&](Sbp entry) {
    return std::find(attrs.nd_sbp.begin(), attrs.nd_sbp.end(), entry) != attrs.nd_sbp.end();
  };
  if (has(sbp::partial_sum) || (has(sbp::partial_max) && has(sbp::partial_min))) {
    throw Unsupported(str("[to_global] gradients cannot pass through local parts given as ",
                          attrs.nd_sbp, ", which mixes several reductions; use partial_sum only"));
  }
  const auto local = [&](const Tensor& global) {
    return local_gradient(global.to_global(reduced_layout(attrs)), *ctx.input_meta(0));
  };
  const Tensor own_dy = local(dy);
  if (!attrs.placement.contains(env::rank())) {
    ctx.set(0, own_dy);
    return;
  }
  const Tensor x = ctx.input(0);
  const Tensor is_taken = cast(eq(x, local(ctx.output())), x.dtype());
  LocalToGlobalAttrs count = attrs;
  count.nd_sbp = without_partial(attrs.nd_sbp, sbp::partial_sum);
  count.sends_first = false;
  const Tensor ties = local(dispatch(kLocalToGlobal, {&is_taken}, count, Site::here()));
  ctx.set(0, div(mul(own_dy, is_taken), ties));
}

// ---------------------------------------------------------------- to_local

void to_local_infer(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  ctx.check(x.is_global(), "the tensor is local already; use it as it is");
  ctx.add_output(
      {.shape = x.local_shape, .dtype = x.dtype, .device = x.device, .has_layout = true});
}

bool to_local_view(const TensorMeta& input, const Shape& /*output*/, const void* /*attrs*/,
                   ViewSpec& view) {
  view.strides = input.strides;
  return true;
}

// The parts of dx are the ranks' dy in x's layout; for a partial x the layout of dx is broadcast.
void to_local_grad(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!ctx.needs(0) || !dy.defined()) return;
  const TensorMeta& x = *ctx.input_meta(0);
  const LocalToGlobalAttrs attrs{.shape = x.shape,
                                 .placement = x.placement,
                                 .nd_sbp = without_partial(x.nd_sbp, sbp::broadcast),
                                 .sends_first = false};
  ctx.set(0, dispatch(kLocalToGlobal, {&dy}, attrs, Site::here()));
}

}  // namespace

const OpDef kRedistribute{.name = "redistribute",
                          .attrs = attrs_def<RedistributeAttrs>(),
                          .infer = redistribute_infer,
                          .sbp = only_broadcast,
                          .grad = redistribute_grad,
                          .view = redistribute_view,
                          .write_back = cannot_write_back};

const OpDef kAllReduceMean{.name = "all_reduce_mean",
                           .infer = all_reduce_mean_infer,
                           .sbp = only_broadcast,
                           .grad = all_reduce_mean_grad};

const OpDef kLocalToGlobal{.name = "local_to_global",
                           .attrs = attrs_def<LocalToGlobalAttrs>(),
                           .infer = local_to_global_infer,
                           .sbp = only_broadcast,
                           .grad = local_to_global_grad,
                           .view = local_to_global_view,
                           .write_back = cannot_write_back};

const OpDef kCandidatesToGlobal{.name = "candidates_to_global",
                                .attrs = attrs_def<LocalToGlobalAttrs>(),
                                .infer = local_to_global_infer,
                                .sbp = only_broadcast,
                                .grad = candidates_to_global_grad,
                                .view = local_to_global_view,
                                .write_back = cannot_write_back,
                                .saved_inputs = 1,
                                .saved_outputs = 1};

const OpDef kToLocal{.name = "to_local",
                     .infer = to_local_infer,
                     .sbp = only_broadcast,
                     .grad = to_local_grad,
                     .view = to_local_view,
                     .write_back = cannot_write_back};

Tensor redistribute(const Tensor& tensor, const Placement& placement, const NdSbp& nd_sbp,
                    Site site) {
  if (thread_state().forbids_implicit_boxing) [[unlikely]] {
    throw InvalidArgument(str("[redistribute] an op needs its input ", tensor.meta(), " as ",
                              nd_sbp, " on ", placement,
                              ", but ForbidImplicitBoxing forbids it; call to_global explicitly"));
  }
  const NoGradGuard no_grad;
  return dispatch(kRedistribute, {&tensor},
                  RedistributeAttrs{.placement = placement, .nd_sbp = nd_sbp}, site);
}

}  // namespace boxing

ForbidImplicitBoxing::ForbidImplicitBoxing()
    : outer_(std::exchange(thread_state().forbids_implicit_boxing, true)) {}

ForbidImplicitBoxing::~ForbidImplicitBoxing() {
  thread_state().forbids_implicit_boxing = outer_;
}

Tensor Tensor::to_global(const Placement& placement, const NdSbp& sbp, Site site) const {
  return to_global({.placement = placement, .sbp = sbp}, site);
}

Tensor Tensor::to_global(const ToGlobalOptions& options, Site site) const {
  if (options.placement.defined() && options.placement.device_type() != DeviceType::kCpu &&
      !cuda::is_built()) {
    throw Unsupported(str("[to_global] this build has no device ", options.placement.device_type(),
                          "; configure with -DFLOW_CUDA=ON, or use a placement of cpu"),
                      site);
  }
  if (is_global()) {
    boxing::RedistributeAttrs attrs{
        .placement = options.placement.defined() ? options.placement : placement(),
        .nd_sbp = options.sbp.empty() ? sbp() : options.sbp,
        .grad_sbp = options.grad_sbp};
    const bool is_same = attrs.placement == placement() && attrs.nd_sbp == sbp();
    if (is_same && attrs.grad_sbp.empty()) return *this;
    return dispatch(boxing::kRedistribute, {this}, attrs, site);
  }
  if (!options.placement.defined() || options.sbp.empty()) {
    throw InvalidArgument(str("[to_global] a local tensor needs a placement and an sbp; received ",
                              meta(), "; call to_global({.placement, .sbp})"),
                          site);
  }
  if (!options.grad_sbp.empty()) {
    throw InvalidArgument(str("[to_global] grad_sbp lays out the gradient of a global tensor; ",
                              "received ", options.grad_sbp, " for ", meta(), "; leave it out"),
                          site);
  }
  boxing::LocalToGlobalAttrs attrs{.placement = options.placement, .nd_sbp = options.sbp};
  const auto joined = boxing::join_parts(*this, {options.placement, options.sbp}, site);
  attrs.shape = joined.shape;
  // All ranks learn the same meta and take the same part in backward: also those whose part is a
  // constant, and those outside the placement, whose tensor is ignored.
  Tensor part = *this;
  const bool is_alike = dtype() == joined.dtype && requires_grad() == joined.requires_grad;
  if (!is_alike) {
    part = cast(detach(), joined.dtype).detach().requires_grad_(joined.requires_grad);
  }
  const bool is_extremum = std::any_of(attrs.nd_sbp.begin(), attrs.nd_sbp.end(), [](Sbp entry) {
    return entry.is_partial() && entry != sbp::partial_sum;
  });
  return dispatch(is_extremum ? boxing::kCandidatesToGlobal : boxing::kLocalToGlobal, {&part},
                  attrs, site);
}

Tensor Tensor::to_local(Site site) const {
  if (!is_global()) return *this;
  // A local tensor cannot follow writes on other ranks, so it gets memory of its own.
  const Tensor source = find_view_link(impl()) == nullptr ? *this : clone(site);
  return dispatch(boxing::kToLocal, {&source}, site);
}

}  // namespace flow
