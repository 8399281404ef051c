#include "ops/creation/copy.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/dispatch.h"
#include "core/view_link.h"
#include "ops/creation/copy_op.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_clone(InferContext& ctx) {
  ctx.add_output_like(0);
}

// dx = dy
void grad_clone(GradContext& ctx) {
  ctx.set(0, ctx.dy());
}

void infer_to_device(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  ctx.check(!x.is_global(),
            "the placement of a global tensor determines its device; use to_global");
  ctx.add_output({.shape = x.shape,
                  .dtype = x.dtype,
                  .device = ctx.attrs<ToDeviceAttrs>().device,
                  .has_layout = true});
}

// dx = dy on the device of x.
void grad_to_device(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, to_device(ctx.dy(), ctx.input_meta(0)->device));
}

void infer_copy(InferContext& ctx) {
  const Shape& target = ctx.input(0).shape;
  const Shape& source = ctx.input(1).shape;
  bool fits = source.size() <= target.size();
  for (int64_t d = 1; fits && d <= source.size(); ++d) {
    const int64_t size = source[source.size() - d];
    fits = size == 1 || size == target[target.size() - d];
  }
  ctx.check(fits, "the source ", source, " does not broadcast to the target ", target,
            "; reshape it first");
  ctx.add_output_like(0);
}

// The old value of the target is not used, but its layout is.
void sbp_copy(SbpContext& ctx) {
  elementwise_sbp(ctx);
  if (ctx.input(0).dtype != ctx.input(1).dtype) return;
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min}) {
    ctx.add({partial, partial}, {partial});
  }
}

// dtarget = 0; dsource = dy summed over the dims that were broadcast, in the dtype of the source.
void grad_copy(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  if (ctx.needs(0)) ctx.set(0, zeros_like(ctx.dy()));
  if (!ctx.needs(1)) return;
  const MetaPtr source = ctx.input_meta(1);
  ctx.set(1, cast(sum_to(ctx.dy(), source->shape), source->dtype));
}

// Every element has the same value on every rank, so the value is also the maximum and the minimum
// over ranks.
void sbp_fill(SbpContext& ctx) {
  unary_sbp<kIncreasing>(ctx);
  if (ctx.attrs<FillAttrs>().value.to<double>() == 0) add_partials(ctx, kLinear);
}

// dx = 0
void grad_fill(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, zeros_like(ctx.dy()));
}

// Whether somebody keeps a tensor that shows the memory of a temporary. A view keeps its base
// alive, and so does the link of a view that has memory of its own.
bool is_seen(const TensorImpl& temporary) {
  struct Handles {
    const TensorImpl* tensor;
    uint32_t count;  // the handles that the temporary, its bases and their links have
  };

  std::vector<Handles> kept{{&temporary, 1}};
  const auto add_handle = [&](const TensorImpl* base) {
    const auto at = std::ranges::find(kept, base, &Handles::tensor);
    if (at != kept.end()) {
      ++at->count;
    } else {
      kept.push_back({base, 1});
    }
  };
  const auto sharing = [&](const TensorImpl& tensor, size_t end) {
    return std::ranges::count_if(std::span(kept).first(end), [&](const Handles& other) {
      return other.tensor->storage == tensor.storage && other.tensor->trace == tensor.trace;
    });
  };
  for (size_t i = 0; i < kept.size(); ++i) {
    const TensorImpl& tensor = *kept[i].tensor;
    if (tensor.autograd && tensor.autograd->base != nullptr) add_handle(tensor.autograd->base);
    const ViewLink* const link = sharing(tensor, i) == 0 ? find_view_link(tensor) : nullptr;
    if (link != nullptr) add_handle(&link->base.impl());
  }
  return std::ranges::any_of(kept, [&](const Handles& handles) {
    const TensorImpl& tensor = *handles.tensor;
    const int64_t owners = tensor.storage ? tensor.storage->use_count() : tensor.trace.use_count();
    return tensor.use_count() > handles.count || owners == 0 ||
           owners > sharing(tensor, kept.size());
  });
}

}  // namespace

const OpDef kClone = {
    .name = "clone",
    .infer = infer_clone,
    .sbp = unary_sbp<kLinear | kIncreasing>,
    .grad = grad_clone,
};

const OpDef kToDevice = {
    .name = "to_device",
    .attrs = attrs_def<ToDeviceAttrs>(),
    .infer = infer_to_device,
    .sbp = only_broadcast,
    .grad = grad_to_device,
};

const OpDef kCopy = {
    .name = "copy_",
    .num_inputs = 2,
    .infer = infer_copy,
    .sbp = sbp_copy,
    .grad = grad_copy,
    .mutates = 1,
};

const OpDef kFill = {
    .name = "fill_",
    .attrs = attrs_def<FillAttrs>(),
    .infer = infer_clone,
    .sbp = sbp_fill,
    .grad = grad_fill,
    .mutates = 1,
};

void register_copy(OpTable& table) {
  table.add(kClone);
  table.add(kCopy);
  table.add(kFill);
  table.add(kToDevice);
}

}  // namespace ops

Tensor clone(const TensorArg& x) {
  return dispatch(ops::kClone, {&x.tensor()}, x.site());
}

Tensor to_device(const TensorArg& x, DeviceType device) {
  return dispatch(ops::kToDevice, {&x.tensor()}, ops::ToDeviceAttrs{device}, x.site());
}

namespace {

// Whether all ranks decide alike whether x is contiguous. A part that has one row where others have
// several may be contiguous alone. In a trace, ranks outside the placement know the strides neither
// of views nor of tensors from outside the trace. If ranks decided by themselves, they would see
// different writes and trace different ops.
bool ranks_see_same_order(const Tensor& x) {
  if (!x.is_global()) return true;
  if (thread_state().trace != nullptr)
    return x.impl().trace != nullptr && find_view_link(x.impl()) == nullptr;
  const TensorMeta& meta = x.meta();
  const auto& ranks = meta.placement.ranks();
  const auto shape_on = [&](int64_t rank) {
    return global_meta(meta.shape, meta.dtype, meta.placement, meta.nd_sbp, rank)->local_shape;
  };
  const Shape largest = shape_on(*ranks.begin()), smallest = shape_on(*std::prev(ranks.end()));
  for (int64_t dim = 0; dim < meta.shape.size(); ++dim) {
    if (largest[dim] > 1 && smallest[dim] <= 1) return false;
  }
  return true;
}

}  // namespace

Tensor contiguous(const TensorArg& x) {
  return x->is_contiguous() && ranks_see_same_order(x) ? x.tensor() : clone(x);
}

Tensor Tensor::clone(Site site) const {
  return flow::clone(TensorArg(*this, site));
}

Tensor Tensor::contiguous(Site site) const {
  return flow::contiguous(TensorArg(*this, site));
}

const Tensor& InPlaceMethods::copy_(const TensorArg& source) const {
  const bool is_apart =
      source->device() != self().device() || is_elsewhere(*thread_state().context, source->impl());
  if (is_apart && !source->is_global() && !self().is_global()) {
    const Tensor moved = to_device(source, self().device());
    dispatch(ops::kCopy, {&self(), &moved}, source.site());
    return self();
  }
  // A cast to integers is not linear, so what is copied into a partial tensor is cast before.
  const bool is_cast_before = self().is_global() && self().sbp().has_partial();
  const Tensor values = is_cast_before ? cast(source, self().dtype()) : source.tensor();
  dispatch(ops::kCopy, {&self(), &values}, source.site());
  return self();
}

void ops::check_is_seen(const char* op, const Tensor& target, Site site) {
  if (is_seen(target.impl())) return;
  throw InvalidArgument(str("[", op, "] the left side, ", target.meta(),
                            ", is a new tensor or a view of one, which nobody keeps, so the values "
                            "would be lost; write to a view of a variable such as x[0], or use "
                            "index_put_ or masked_fill_"),
                        site);
}

Tensor ops::without_leading_ones(const Tensor& values, int64_t dims, Site site) {
  Shape shape = values.shape();
  while (shape.size() > dims && shape[0] == 1)
    shape.erase(0);
  return shape.size() == values.dim() ? values : reshape({values, site}, shape);
}

const Tensor& Tensor::operator=(const TensorArg& values) && {
  ops::check_is_seen("=", *this, values.site());
  return copy_({ops::without_leading_ones(values, dim(), values.site()), values.site()});
}

const Tensor& Tensor::operator=(const ScalarArg& value) && {
  ops::check_is_seen("=", *this, value.site);
  return fill_(value.value, value.site);
}

const Tensor& InPlaceMethods::fill_(const Scalar& value, Site site) const {
  ops::check_fill_value(self().dtype(), value, "fill_", site);
  if (self().is_global() && self().sbp().has_partial()) {  // the addends of a value differ
    const TensorOptions options{.dtype = self().dtype(),
                                .placement = self().placement(),
                                .sbp = NdSbp::broadcast(self().sbp().size())};
    return copy_({full({}, value, options, site), site});
  }
  dispatch(ops::kFill, {&self()}, ops::FillAttrs{value}, site);
  return self();
}

const Tensor& InPlaceMethods::zero_(Site site) const {
  return ops::named("zero_", site, [&]() -> const Tensor& { return fill_(0, site); });
}

}  // namespace flow
