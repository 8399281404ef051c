#include "ops/creation/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/device_memory.h"
#include "core/dispatch.h"
#include "ops/creation/creation_op.h"
#include "ops/kernel/convert_rows.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"

namespace flow {

namespace ops {

namespace {

void check_ranks(const Placement& placement, const char* op) {
  const int64_t world_size = thread_state().context->world_size();
  const std::vector<int64_t>& ranks = placement.ranks();
  const int64_t last = *std::max_element(ranks.begin(), ranks.end());
  if (last < world_size) return;
  throw InvalidArgument(str("[", op, "] placement ", placement, " names rank ", last,
                            ", but the world has ", world_size,
                            world_size == 1 ? " rank" : " ranks", "; start more with flowrun -n ",
                            last + 1, " PROGRAM or flow::run_ranks(", last + 1, ", …)"));
}

}  // namespace

LayoutAttrs resolve_layout(const Shape& shape, DType dtype, const TensorOptions& options,
                           const char* op) {
  LayoutAttrs attrs{shape, options.dtype.value_or(dtype), DeviceType::kCpu, options.placement,
                    options.sbp};
  const ThreadState& state = thread_state();
  const bool is_open = !attrs.placement.defined() && options.device.empty();
  if (is_open && state.default_placement.defined()) {
    attrs.placement = state.default_placement;
    if (attrs.sbp.empty()) attrs.sbp = state.default_sbp;
  }
  if (attrs.placement.defined()) {
    check_ranks(attrs.placement, op);
    attrs.device = attrs.placement.device_type();
    if (attrs.sbp.empty()) attrs.sbp = NdSbp::broadcast(attrs.placement.num_axes());
  } else if (!attrs.sbp.empty()) {
    throw InvalidArgument(str("[", op, "] sbp ", attrs.sbp,
                              " was given without a placement; give one, or a PlacementGuard"));
  }
  if (!options.device.empty()) {
    const DeviceType device = use_device(options.device);
    if (attrs.placement.defined() && device != attrs.device) {
      throw InvalidArgument(str("[", op, "] device ", device, " differs from that of placement ",
                                attrs.placement, "; leave it out"));
    }
    attrs.device = device;
  }
  if (attrs.device != DeviceType::kCpu && !cuda::is_built()) {
    throw Unsupported(str("[", op, "] this build has no ", attrs.device,
                          " kernels; configure with -DFLOW_CUDA=ON, or use device cpu"));
  }
  return attrs;
}

void check_grad(DType dtype, const TensorOptions& options, const char* op) {
  if (!options.requires_grad || is_floating(dtype)) return;
  throw InvalidArgument(str("[", op, "] only floating tensors can require gradients; got ", dtype,
                            "; give a floating dtype"));
}

Tensor with_grad(Tensor tensor, const TensorOptions& options, const char* op) {
  check_grad(tensor.dtype(), options, op);
  if (!options.requires_grad) return tensor;
  tensor.requires_grad_();
  return tensor;
}

void infer_layout(InferContext& ctx) {
  const auto& attrs = ctx.attrs<LayoutAttrs>();
  ctx.add_output({.shape = attrs.shape,
                  .dtype = attrs.dtype,
                  .placement = attrs.placement,
                  .nd_sbp = attrs.sbp,
                  .device = attrs.device,
                  .has_layout = attrs.placement.defined()});
}

bool holds_values(const TensorMeta& meta, int64_t rank) {
  if (!meta.is_global()) return true;
  const int64_t position = meta.placement.position(rank);
  for (int64_t axis = 0; axis < meta.nd_sbp.size(); ++axis) {
    if (meta.nd_sbp[axis] == sbp::partial_sum && meta.placement.coordinate(position, axis) != 0) {
      return false;
    }
  }
  return true;
}

namespace {

template <class Attrs>
constexpr OpDef source(const char* name) {
  return {
      .name = name,
      .num_inputs = 0,
      .attrs = attrs_def<Attrs>(),
      .infer = infer_layout,
      .sbp = only_broadcast,
      .grad = not_differentiable,
  };
}

}  // namespace

const OpDef kEmpty = source<LayoutAttrs>("empty");
const OpDef kFull = source<FullAttrs>("full");
const OpDef kArange = source<ArangeAttrs>("arange");
const OpDef kLinspace = source<LinspaceAttrs>("linspace");
const OpDef kEye = source<LayoutAttrs>("eye");

void register_creation(OpTable& table) {
  table.add(kEmpty);
  table.add(kFull);
  table.add(kArange);
  table.add(kLinspace);
  table.add(kEye);
}

}  // namespace ops

namespace {

using ops::LayoutAttrs;

Tensor make_full(const Shape& shape, const Scalar& value, DType dtype, const TensorOptions& options,
                 const char* op, Site site) {
  return ops::named(op, site, [&]() -> Tensor {
    const LayoutAttrs layout = ops::resolve_layout(shape, dtype, options, op);
    ops::check_fill_value(layout.dtype, value, op, site);
    return ops::with_grad(dispatch(ops::kFull, {}, ops::FullAttrs{layout, value}, site), options,
                          op);
  });
}

DType dtype_of_category(const Scalar& value) {
  return value.is_floating() ? default_dtype() : promote(DType::kBool, value);
}

// Fills the fields that `options` leaves unset with those of `x`.
TensorOptions merge_like(const Tensor& x, const TensorOptions& options) {
  TensorOptions merged = options_like(x);
  if (options.dtype) merged.dtype = options.dtype;
  if (options.placement.defined()) {
    merged.placement = options.placement;
    merged.sbp = options.sbp;
    merged.device.clear();
  }
  if (!options.sbp.empty()) merged.sbp = options.sbp;
  if (!options.device.empty()) merged.device = options.device;
  merged.requires_grad = options.requires_grad;
  return merged;
}

// The same for another shape, which may lack dims along which x is split.
TensorOptions merge_like(const Tensor& x, const Shape& shape, const TensorOptions& options) {
  TensorOptions merged = merge_like(x, options);
  if (!options.sbp.empty()) return merged;
  for (int64_t axis = 0; axis < merged.sbp.size(); ++axis) {
    const Sbp entry = merged.sbp[axis];
    if (entry.is_split() && entry.dim() >= shape.size()) {
      merged.sbp = merged.sbp.with(axis, sbp::broadcast);
    }
  }
  return merged;
}

}  // namespace

// ---- from values

TensorLiteral::TensorLiteral(std::initializer_list<TensorLiteral> nested) {
  shape_.push_back(static_cast<int64_t>(nested.size()));
  for (const TensorLiteral& part : nested) {
    if (!(part.shape_ == nested.begin()->shape_)) {
      throw InvalidArgument(str("[tensor] the nested lists are ragged: they hold parts of shape ",
                                nested.begin()->shape_, " and ", part.shape_,
                                "; give rows of equal length"));
    }
    values_.insert(values_.end(), part.values_.begin(), part.values_.end());
  }
  if (nested.size() == 0) return;
  for (const int64_t size : nested.begin()->shape_)
    shape_.push_back(size);
}

DType TensorLiteral::dtype() const {
  DType dtype = values_.empty() ? default_dtype() : DType::kBool;
  for (const Scalar& value : values_)
    dtype = value.is_floating() ? default_dtype() : promote(dtype, value);
  return dtype;
}

namespace {

// This rank's part of `values`, which hold the logical tensor in row-major order.
void fill_local(const TensorMeta& meta, std::byte* target, DType dtype, const std::byte* values) {
  const Shape& local = meta.local_shape;
  const int64_t last = local.size() - 1;
  const int64_t row = last < 0 ? 1 : local[last];
  const auto from_bytes = static_cast<int64_t>(dtype_size(dtype));
  const auto to_bytes = static_cast<int64_t>(dtype_size(meta.dtype));
  const Strides logical = contiguous_strides(meta.shape);
  Shape index = Shape::filled(local.size(), 0);
  for (int64_t i = 0; i < meta.local_numel; i += row) {
    int64_t position = 0;
    for (int64_t d = 0; d <= last; ++d)
      position += (meta.local_begin[d] + index[d]) * logical[d];
    ops::convert_row({meta.dtype, target + i * to_bytes, 1},
                     {dtype, values + position * from_bytes, 1}, row);
    for (int64_t d = last - 1; d >= 0 && ++index[d] == local[d]; --d)
      index[d] = 0;
  }
}

// Throws InvalidArgument if an element of the integer dtype `target` cannot hold one of the values.
void check_values(const void* values, DType dtype, size_t count, DType target, Site site) {
  if (!is_integral(target) || dtype == target) return;
  dispatch_all(dtype, [&]<class T>() {
    using Floating = std::conditional_t<std::is_same_v<T, double>, double, float>;
    using Number = std::conditional_t<std::is_integral_v<T>, int64_t, Floating>;
    for (const T value : std::span(static_cast<const T*>(values), count))
      ops::check_fill_value(target, static_cast<Number>(value), "tensor", site);
  });
}

}  // namespace

namespace internal {

Tensor tensor_from(const void* values, DType dtype, size_t count, const Shape& shape,
                   const TensorOptions& options, Site site) {
  const LayoutAttrs layout = ops::resolve_layout(shape, dtype, options, "tensor");
  RankContext& context = *thread_state().context;
  const MetaPtr meta =
      layout.placement.defined()
          ? global_meta(shape, layout.dtype, layout.placement, layout.sbp, context.rank())
          : local_meta(shape, layout.dtype, layout.device);
  if (meta->numel != static_cast<int64_t>(count)) {
    throw InvalidArgument(str("[tensor] ", count, " values do not fill shape ", shape,
                              ", which has ", meta->numel, " elements; give one value per element"),
                          site);
  }
  check_values(values, dtype, count, layout.dtype, site);
  Ref<Storage> storage = Storage::allocate(context.allocator(), meta->local_bytes());
  if (ops::holds_values(*meta, context.rank())) {
    fill_local(*meta, storage->data(), dtype, static_cast<const std::byte*>(values));
  } else {
    std::memset(storage->data(), 0, meta->local_bytes());
  }
  if (meta->device != DeviceType::kCpu) {
    const Ref<Storage> host = std::move(storage);
    storage = allocate_storage(context, meta->device, meta->local_bytes());
    copy_bytes(context, storage->data(), meta->device, host->data(), DeviceType::kCpu,
               meta->local_bytes());
  }
  return ops::with_grad(Tensor::make(meta, std::move(storage)), options, "tensor");
}

Tensor wrap_blob(void* data, DType dtype, const Shape& shape, const TensorOptions& options,
                 std::function<void(void*)> deleter, Site site) {
  if (options.dtype && *options.dtype != dtype) {
    throw InvalidArgument(str("[from_blob] the memory holds ", dtype, "; asked for ",
                              *options.dtype, "; leave dtype out and cast the result"),
                          site);
  }
  if (options.placement.defined() || !options.sbp.empty()) {
    throw InvalidArgument(
        "[from_blob] makes local tensors; leave placement and sbp out and call to_global on the "
        "result",
        site);
  }
  if (!options.device.empty() && parse_device_type(options.device) != DeviceType::kCpu) {
    throw Unsupported(str("[from_blob] this build wraps host memory only; got device ",
                          options.device, "; leave it out"),
                      site);
  }
  ops::check_grad(dtype, options, "from_blob");
  const MetaPtr meta = local_meta(shape, dtype, DeviceType::kCpu);
  if (data == nullptr && meta->numel > 0) {
    throw InvalidArgument(
        str("[from_blob] data is null for shape ", shape, "; give the address of its elements"),
        site);
  }
  Ref<Storage> storage = Storage::wrap(data, meta->local_bytes(), std::move(deleter));
  return ops::with_grad(Tensor::make(meta, std::move(storage)), options, "from_blob");
}

}  // namespace internal

Tensor tensor(const TensorLiteral& values, const TensorOptions& options, Site site) {
  const std::vector<Scalar>& scalars = values.values();
  TensorOptions resolved = options;
  if (!resolved.dtype) resolved.dtype = values.dtype();
  if (is_floating(*resolved.dtype)) {
    std::vector<double> numbers;
    for (const Scalar& value : scalars)
      numbers.push_back(value.to<double>());
    return tensor(numbers, values.shape(), resolved, site);
  }
  std::vector<int64_t> numbers;
  for (const Scalar& value : scalars) {
    numbers.push_back(*resolved.dtype == DType::kBool ? value.to<bool>() : value.to<int64_t>());
  }
  return tensor(numbers, values.shape(), resolved, site);
}

// ---- from a shape

Tensor empty(const Shape& shape, const TensorOptions& options, Site site) {
  return ops::named("empty", site, [&]() -> Tensor {
    const LayoutAttrs layout = ops::resolve_layout(shape, default_dtype(), options, "empty");
    return ops::with_grad(dispatch(ops::kEmpty, {}, layout, site), options, "empty");
  });
}

Tensor zeros(const Shape& shape, const TensorOptions& options, Site site) {
  return make_full(shape, 0, default_dtype(), options, "zeros", site);
}

Tensor ones(const Shape& shape, const TensorOptions& options, Site site) {
  return make_full(shape, 1, default_dtype(), options, "ones", site);
}

Tensor full(const Shape& shape, const Scalar& value, const TensorOptions& options, Site site) {
  return make_full(shape, value, dtype_of_category(value), options, "full", site);
}

Tensor arange(const Scalar& end, const TensorOptions& options, Site site) {
  return arange(0, end, 1, options, site);
}

Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options, Site site) {
  return arange(start, end, 1, options, site);
}

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const TensorOptions& options, Site site) {
  return ops::located(site, [&]() -> Tensor {
    const double from = start.to<double>();
    const double to = end.to<double>();
    const double by = step.to<double>();
    const bool are_finite = std::isfinite(from) && std::isfinite(to) && std::isfinite(by);
    if (!(by != 0 && are_finite && (to - from) / by >= 0)) {
      throw InvalidArgument(str("[arange] step ", step, " does not lead from ", start, " to ", end,
                                "; give finite bounds and a finite step of the right sign"),
                            site);
    }
    const bool is_integer = !start.is_floating() && !end.is_floating() && !step.is_floating();
    int64_t count = 0;
    if (is_integer) {
      const int64_t distance = end.to<int64_t>() - start.to<int64_t>();
      const int64_t stride = step.to<int64_t>();
      count = distance / stride + (distance % stride != 0 ? 1 : 0);
    } else {
      count = static_cast<int64_t>(std::ceil((to - from) / by));
    }
    const LayoutAttrs layout =
        ops::resolve_layout({count}, is_integer ? int64 : default_dtype(), options, "arange");
    if (layout.dtype == DType::kBool) {
      throw InvalidArgument("[arange] is not defined for bool; take an integer dtype", site);
    }
    const ops::ArangeAttrs attrs{layout, start, step};
    return ops::with_grad(dispatch(ops::kArange, {}, attrs, site), options, "arange");
  });
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options,
                Site site) {
  return ops::located(site, [&]() -> Tensor {
    if (steps < 0) {
      throw InvalidArgument(str("[linspace] steps is ", steps, "; give a number of at least 0"),
                            site);
    }
    const LayoutAttrs layout = ops::resolve_layout({steps}, default_dtype(), options, "linspace");
    ops::check_fill_value(layout.dtype, start, "linspace", site);
    ops::check_fill_value(layout.dtype, end, "linspace", site);
    const ops::LinspaceAttrs attrs{layout, start.to<double>(), end.to<double>()};
    return ops::with_grad(dispatch(ops::kLinspace, {}, attrs, site), options, "linspace");
  });
}

Tensor eye(int64_t n, const TensorOptions& options, Site site) {
  return eye(n, n, options, site);
}

Tensor eye(int64_t n, int64_t m, const TensorOptions& options, Site site) {
  return ops::named("eye", site, [&]() -> Tensor {
    const LayoutAttrs layout = ops::resolve_layout({n, m}, default_dtype(), options, "eye");
    return ops::with_grad(dispatch(ops::kEye, {}, layout, site), options, "eye");
  });
}

// ---- like another tensor

TensorOptions options_like(const Tensor& x) {
  TensorOptions options{.dtype = x.dtype()};
  if (x.is_global()) {
    options.placement = x.placement();
    options.sbp = x.sbp();
  } else {
    options.device = device_type_name(x.device());
  }
  return options;
}

Tensor empty_like(const TensorArg& x, const TensorOptions& options) {
  return empty(x->shape(), merge_like(x, options), x.site());
}

Tensor zeros_like(const TensorArg& x, const TensorOptions& options) {
  return full_like(x, 0, options);
}

Tensor ones_like(const TensorArg& x, const TensorOptions& options) {
  return full_like(x, 1, options);
}

Tensor full_like(const TensorArg& x, const Scalar& value, const TensorOptions& options) {
  return full(x->shape(), value, merge_like(x, options), x.site());
}

Tensor new_empty(const TensorArg& x, const Shape& shape, const TensorOptions& options) {
  return ops::named("new_empty", x.site(),
                    [&] { return empty(shape, merge_like(x, shape, options), x.site()); });
}

namespace {

// `name`: that of the function in errors.
Tensor full_in_layout_of(const char* name, const TensorArg& x, const Shape& shape,
                         const Scalar& value, const TensorOptions& options) {
  return ops::named(name, x.site(),
                    [&] { return full(shape, value, merge_like(x, shape, options), x.site()); });
}

}  // namespace

Tensor new_zeros(const TensorArg& x, const Shape& shape, const TensorOptions& options) {
  return full_in_layout_of("new_zeros", x, shape, 0, options);
}

Tensor new_ones(const TensorArg& x, const Shape& shape, const TensorOptions& options) {
  return full_in_layout_of("new_ones", x, shape, 1, options);
}

Tensor new_full(const TensorArg& x, const Shape& shape, const Scalar& value,
                const TensorOptions& options) {
  return full_in_layout_of("new_full", x, shape, value, options);
}

Tensor new_tensor(const TensorArg& x, const TensorLiteral& values, const TensorOptions& options) {
  return tensor(values, merge_like(x, values.shape(), options), x.site());
}

Tensor ShapeMethods::new_empty(const Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_empty(TensorArg(self(), site), shape, options);
}

Tensor ShapeMethods::new_zeros(const Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_zeros(TensorArg(self(), site), shape, options);
}

Tensor ShapeMethods::new_ones(const Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_ones(TensorArg(self(), site), shape, options);
}

Tensor ShapeMethods::new_full(const Shape& shape, const Scalar& value, const TensorOptions& options,
                              Site site) const {
  return flow::new_full(TensorArg(self(), site), shape, value, options);
}

}  // namespace flow
