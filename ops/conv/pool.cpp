#include "ops/conv/pool.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/conv/pool_op.h"
#include "ops/named_errors.h"
#include "ops/sbp_rules.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {

WindowDim window_dim(const MaxPoolAttrs& attrs, size_t i, int64_t in, int64_t out) {
  return {in, out, attrs.kernel[i], attrs.stride[i], attrs.dilation[i], attrs.padding[i]};
}

WindowDim window_dim(const AvgPoolAttrs& attrs, size_t i, int64_t in, int64_t out) {
  return {in, out, attrs.kernel[i], attrs.stride[i], 1, attrs.padding[i]};
}

namespace {

constexpr int64_t kNumDims = 2;

// Dim H (0) or W (1) of a shape.
int64_t spatial_size(const Shape& shape, size_t i) {
  return shape[shape.size() - kNumDims + static_cast<int64_t>(i)];
}

Shape with_spatial(const Shape& shape, const SpatialInts& size) {
  Shape result = shape;
  for (size_t i = 0; i < kNumDims; ++i)
    result[shape.size() - kNumDims + static_cast<int64_t>(i)] = size[i];
  return result;
}

SpatialInts spatial_of(const Shape& shape) {
  return {spatial_size(shape, 0), spatial_size(shape, 1), 0};
}

// ---- shapes

void check_dims(const OpContext& ctx) {
  ctx.check(ctx.input(0).dim() >= kNumDims + 1 && ctx.input(0).dim() <= kNumDims + 2,
            "takes (N, C, H, W) or (C, H, W); add or join dims");
}

void check_input(const OpContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "takes floating dtypes; cast the input");
  check_dims(ctx);
}

// In ceil mode the last window may extend past the end, but it starts inside the input or the
// padding before it.
int64_t count_pooled(const WindowDim& dim, bool ceil_mode) {
  const int64_t padded = dim.in + 2 * dim.padding;
  if (!ceil_mode) return count_windows(padded, dim.reach(), dim.stride);
  const int64_t more = padded + dim.stride - 1;
  const int64_t count = count_windows(more, dim.reach(), dim.stride);
  return (count - 1) * dim.stride >= dim.in + dim.padding ? count - 1 : count;
}

template <class Attrs>
Shape pooled_shape(const OpContext& ctx, const Shape& x) {
  const auto& attrs = ctx.attrs<Attrs>();
  SpatialInts size{};
  for (size_t i = 0; i < kNumDims; ++i) {
    const WindowDim dim = window_dim(attrs, i, spatial_size(x, i), 0);
    ctx.check(2 * dim.padding <= dim.reach(), "padding ", dim.padding,
              " is more than half of the window, which covers ", dim.reach(),
              " elements; pad less");
    size[i] = count_pooled(dim, attrs.ceil_mode);
    ctx.check(dim.in > 0 && size[i] > 0, "the window does not fit: it covers ", dim.reach(),
              " elements, but the dim has ", dim.in, " and padding ", dim.padding,
              " on both sides; use a smaller window");
  }
  return with_spatial(x, size);
}

// Adaptive windows are never empty if the input has elements.
Shape adapted_shape(const OpContext& ctx, const Shape& x, const SpatialInts& size) {
  for (size_t i = 0; i < kNumDims; ++i)
    ctx.check(spatial_size(x, i) > 0 || size[i] == 0, "H and W must not be empty");
  return with_spatial(x, size);
}

Shape max_pooled_shape(const OpContext& ctx, const Shape& x) {
  const auto& attrs = ctx.attrs<MaxPoolAttrs>();
  return attrs.is_adaptive() ? adapted_shape(ctx, x, attrs.adaptive)
                             : pooled_shape<MaxPoolAttrs>(ctx, x);
}

void infer_max_pool(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast the input");
  check_dims(ctx);
  const Shape y = max_pooled_shape(ctx, ctx.input(0).shape);
  ctx.add_output(y, ctx.input(0).dtype);
  if (&ctx.op() == &kMaxPoolWithIndices) ctx.add_output(y, DType::kInt64);
}

void infer_max_pool_backward(InferContext& ctx) {
  check_input(ctx);
  const Shape y = max_pooled_shape(ctx, ctx.input(0).shape);
  ctx.check(ctx.input(1).shape == y && ctx.input(1).dtype == ctx.input(0).dtype,
            "dy must have the shape ", y, " and dtype of the pooled x");
  ctx.add_output_like(0);
}

void infer_max_pool_gather(InferContext& ctx) {
  check_input(ctx);
  ctx.check(ctx.input(1).shape == ctx.input(0).shape && ctx.input(1).dtype == ctx.input(0).dtype,
            "the second tensor must have the shape and dtype of x");
  ctx.add_output(max_pooled_shape(ctx, ctx.input(0).shape), ctx.input(0).dtype);
}

void infer_avg_pool(InferContext& ctx) {
  if (ctx.input(0).dtype == DType::kInt64) {  // means are rounded towards zero, as in PyTorch
    check_dims(ctx);
  } else {
    check_input(ctx);
  }
  ctx.add_output(pooled_shape<AvgPoolAttrs>(ctx, ctx.input(0).shape), ctx.input(0).dtype);
}

void infer_avg_pool_backward(InferContext& ctx) {
  check_input(ctx);
  const Shape& dy = ctx.input(0).shape;
  const Shape x = with_spatial(dy, ctx.attrs<AvgPoolAttrs>().size);
  ctx.check(pooled_shape<AvgPoolAttrs>(ctx, x) == dy, "dy is not the shape of the pooled ", x);
  ctx.add_output(x, ctx.input(0).dtype);
}

void infer_adaptive(InferContext& ctx) {
  check_input(ctx);
  const Shape& x = ctx.input(0).shape;
  ctx.add_output(adapted_shape(ctx, x, ctx.attrs<AdaptivePoolAttrs>().size), ctx.input(0).dtype);
}

// ---- SBP: planes are independent, and so are windows that do not overlap.

// Calls add(dim) for the dims that may be split, in x and y alike.
template <class Fits, class Add>
void for_split_dims(const Shape& x, const Fits& fits, const Add& add) {
  for (int64_t i = 0; i < x.size() - kNumDims; ++i)
    add(i);
  for (size_t i = 0; i < kNumDims; ++i) {
    if (fits(i)) add(x.size() - kNumDims + static_cast<int64_t>(i));
  }
}

template <class Attrs>
bool cuts_between_windows(const SbpContext& ctx, const Shape& x, const Shape& y, size_t i) {
  return splits_between_windows(
      window_dim(ctx.attrs<Attrs>(), i, spatial_size(x, i), spatial_size(y, i)), ctx.num_ranks());
}

// Returns true if the windows of each rank's parts are the windows that the whole tensor has there.
bool parts_keep_windows(int64_t in, int64_t out, int64_t num_ranks) {
  if (in == out) return true;
  for (int64_t r = 0; r < num_ranks; ++r) {
    const Range from = balanced_part(in, num_ranks, r);
    const Range to = balanced_part(out, num_ranks, r);
    for (int64_t o = 0; o < to.size; ++o) {
      const AdaptiveWindow own = adaptive_window(from.size, to.size, o);
      const AdaptiveWindow whole = adaptive_window(in, out, to.begin + o);
      if (own.begin + from.begin != whole.begin || own.end + from.begin != whole.end) return false;
    }
  }
  return num_ranks > 0;
}

// Returns true if ranks that split dim i of x and y evenly have whole windows.
bool cuts_between_maxima(const SbpContext& ctx, const Shape& x, const Shape& y, size_t i) {
  return ctx.attrs<MaxPoolAttrs>().is_adaptive()
             ? parts_keep_windows(spatial_size(x, i), spatial_size(y, i), ctx.num_ranks())
             : cuts_between_windows<MaxPoolAttrs>(ctx, x, y, i);
}

// Returns true if each element of x is in at most one window, so that nothing is summed there.
template <class Attrs>
bool is_disjoint(const Attrs& attrs) {
  for (size_t i = 0; i < kNumDims; ++i) {
    if (window_dim(attrs, i, 0, 0).reach() > attrs.stride[i]) return false;
  }
  return true;
}

// The same as is_disjoint, for the windows of maxima.
bool maxima_are_disjoint(const SbpContext& ctx, const Shape& x, const Shape& y) {
  const auto& attrs = ctx.attrs<MaxPoolAttrs>();
  if (!attrs.is_adaptive()) return is_disjoint(attrs);
  for (size_t i = 0; i < kNumDims; ++i) {
    if (spatial_size(y, i) > 0 && spatial_size(x, i) % spatial_size(y, i) != 0) return false;
  }
  return true;
}

// The maximum over a window and over ranks commute.
void sbp_max_pool(SbpContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  const Shape& y = ctx.output(0).shape;
  for_split_dims(
      x, [&](size_t i) { return cuts_between_maxima(ctx, x, y, i); },
      [&](int64_t dim) { ctx.add({sbp::split(dim)}, {sbp::split(dim)}); });
  ctx.add({sbp::partial_max}, {sbp::partial_max});
}

// Indices count in the whole plane, so it is not split.
void sbp_max_pool_with_indices(SbpContext& ctx) {
  for_split_dims(
      ctx.input(0).shape, [](size_t) { return false; },
      [&](int64_t dim) {
        ctx.add({sbp::split(dim)}, {sbp::split(dim), sbp::split(dim)});
      });
}

// Both are linear in the second tensor; if no elements are added, they only move its elements.
void sbp_at_maxima(SbpContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  const Shape& y = &ctx.op() == &kMaxPoolBackward ? ctx.input(1).shape : ctx.output(0).shape;
  for_split_dims(
      x, [&](size_t i) { return cuts_between_maxima(ctx, x, y, i); },
      [&](int64_t dim) {
        ctx.add({sbp::split(dim), sbp::split(dim)}, {sbp::split(dim)});
      });
  ctx.add({sbp::broadcast, sbp::partial_sum}, {sbp::partial_sum});
  if (&ctx.op() == &kMaxPoolBackward && !maxima_are_disjoint(ctx, x, y)) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, partial}, {partial});
}

// Means of a single element each keep the order.
void sbp_avg_pool(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<AvgPoolAttrs>();
  const bool is_backward = &ctx.op() == &kAvgPoolBackward;
  const Shape& x = is_backward ? ctx.output(0).shape : ctx.input(0).shape;
  const Shape& y = is_backward ? ctx.input(0).shape : ctx.output(0).shape;
  for_split_dims(
      x, [&](size_t i) { return cuts_between_windows<AvgPoolAttrs>(ctx, x, y, i); },
      [&](int64_t dim) { ctx.add({sbp::split(dim)}, {sbp::split(dim)}); });
  const bool is_single = is_backward ? is_disjoint(attrs) : attrs.kernel == SpatialInts{1, 1, 1};
  uint32_t partials = is_single && attrs.divisor >= 0 ? kIncreasing : 0U;
  if (is_floating(ctx.input(0).dtype)) partials |= kLinear;  // means of integers are rounded
  add_partials(ctx, partials);
}

void sbp_adaptive(SbpContext& ctx) {
  const Shape& in = ctx.input(0).shape;
  const Shape& out = ctx.output(0).shape;
  for_split_dims(
      in,
      [&](size_t i) {
        const bool is_backward = &ctx.op() == &kAdaptiveAvgPoolBackward;
        return parts_keep_windows(spatial_size(is_backward ? out : in, i),
                                  spatial_size(is_backward ? in : out, i), ctx.num_ranks());
      },
      [&](int64_t dim) { ctx.add({sbp::split(dim)}, {sbp::split(dim)}); });
  bool is_single = true;  // as for avg_pool
  for (size_t i = 0; i < kNumDims; ++i) {
    const int64_t few = spatial_size(in, i);
    is_single = is_single && few > 0 && spatial_size(out, i) % few == 0;
  }
  add_partials(ctx, is_single ? kLinear | kIncreasing : kLinear);
}

Cost adaptive_cost(const SbpContext& ctx) {
  return {.flops = static_cast<double>(
              std::max(ctx.input(0).shape.numel(), ctx.output(0).shape.numel()))};
}

Cost max_pool_cost(const SbpContext& ctx) {
  const auto& attrs = ctx.attrs<MaxPoolAttrs>();
  if (attrs.is_adaptive()) return adaptive_cost(ctx);
  return {.flops = static_cast<double>(ctx.output(0).shape.numel()) *
                   static_cast<double>(attrs.kernel[0] * attrs.kernel[1])};
}

Cost avg_pool_cost(const SbpContext& ctx) {
  const auto& attrs = ctx.attrs<AvgPoolAttrs>();
  return {.flops = static_cast<double>(ctx.output(0).shape.numel()) *
                   static_cast<double>(attrs.kernel[0] * attrs.kernel[1])};
}

// ---- gradients

template <class Attrs>
Tensor call(const OpDef& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs) {
  return dispatch(op, inputs, attrs, Site::here());
}

// y = x at its maxima:  dx = dy there, 0 elsewhere. The indices have no gradient.
void grad_max_pool(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  ctx.set(0, call(kMaxPoolBackward, {&x, &ctx.dy()}, ctx.attrs<MaxPoolAttrs>()));
}

// dx = dy written to the maxima of x:  d(dy) = g read at these positions. The positions of the
// maxima are constant except for ties.
void grad_max_pool_backward(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(1)) return;
  const Tensor x = ctx.input(0);
  ctx.set(1, call(kMaxPoolGather, {&x, &ctx.dy()}, ctx.attrs<MaxPoolAttrs>()));
}

void grad_max_pool_gather(GradContext& ctx) {
  if (!ctx.dy().defined() || !ctx.needs(1)) return;
  const Tensor x = ctx.input(0);
  ctx.set(1, call(kMaxPoolBackward, {&x, &ctx.dy()}, ctx.attrs<MaxPoolAttrs>()));
}

// y = A x with the matrix A of the means:  dx = A^T dy.
void grad_avg_pool(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  AvgPoolAttrs attrs = ctx.attrs<AvgPoolAttrs>();
  attrs.size = spatial_of(ctx.input_meta(0)->shape);
  ctx.set(0, call(kAvgPoolBackward, {&ctx.dy()}, attrs));
}

void grad_avg_pool_backward(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  AvgPoolAttrs attrs = ctx.attrs<AvgPoolAttrs>();
  attrs.size = {};
  ctx.set(0, call(kAvgPool, {&ctx.dy()}, attrs));
}

void grad_adaptive(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const AdaptivePoolAttrs attrs{spatial_of(ctx.input_meta(0)->shape)};
  ctx.set(0, call(kAdaptiveAvgPoolBackward, {&ctx.dy()}, attrs));
}

void grad_adaptive_backward(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const AdaptivePoolAttrs attrs{spatial_of(ctx.input_meta(0)->shape)};
  ctx.set(0, call(kAdaptiveAvgPool, {&ctx.dy()}, attrs));
}

}  // namespace

const OpDef kMaxPool{.name = "max_pool",
                     .attrs = attrs_def<MaxPoolAttrs>(),
                     .infer = infer_max_pool,
                     .sbp = sbp_max_pool,
                     .grad = grad_max_pool,
                     .cost = max_pool_cost,
                     .saved_inputs = 0b1};

const OpDef kMaxPoolWithIndices{.name = "max_pool_with_indices",
                                .num_outputs = 2,
                                .attrs = attrs_def<MaxPoolAttrs>(),
                                .infer = infer_max_pool,
                                .sbp = sbp_max_pool_with_indices,
                                .grad = grad_max_pool,
                                .cost = max_pool_cost,
                                .saved_inputs = 0b1};

const OpDef kMaxPoolBackward{.name = "max_pool_backward",
                             .num_inputs = 2,
                             .attrs = attrs_def<MaxPoolAttrs>(),
                             .infer = infer_max_pool_backward,
                             .sbp = sbp_at_maxima,
                             .grad = grad_max_pool_backward,
                             .cost = max_pool_cost,
                             .saved_inputs = 0b01};

const OpDef kMaxPoolGather{.name = "max_pool_gather",
                           .num_inputs = 2,
                           .attrs = attrs_def<MaxPoolAttrs>(),
                           .infer = infer_max_pool_gather,
                           .sbp = sbp_at_maxima,
                           .grad = grad_max_pool_gather,
                           .cost = max_pool_cost,
                           .saved_inputs = 0b01};

const OpDef kAvgPool{.name = "avg_pool",
                     .attrs = attrs_def<AvgPoolAttrs>(),
                     .infer = infer_avg_pool,
                     .sbp = sbp_avg_pool,
                     .grad = grad_avg_pool,
                     .cost = avg_pool_cost};

const OpDef kAvgPoolBackward{.name = "avg_pool_backward",
                             .attrs = attrs_def<AvgPoolAttrs>(),
                             .infer = infer_avg_pool_backward,
                             .sbp = sbp_avg_pool,
                             .grad = grad_avg_pool_backward,
                             .cost = avg_pool_cost};

const OpDef kAdaptiveAvgPool{.name = "adaptive_avg_pool",
                             .attrs = attrs_def<AdaptivePoolAttrs>(),
                             .infer = infer_adaptive,
                             .sbp = sbp_adaptive,
                             .grad = grad_adaptive,
                             .cost = adaptive_cost};

const OpDef kAdaptiveAvgPoolBackward{.name = "adaptive_avg_pool_backward",
                                     .attrs = attrs_def<AdaptivePoolAttrs>(),
                                     .infer = infer_adaptive,
                                     .sbp = sbp_adaptive,
                                     .grad = grad_adaptive_backward,
                                     .cost = adaptive_cost};

void register_pool(OpTable& table);

void register_pool(OpTable& table) {
  for (const OpDef* op :
       {&kMaxPool, &kMaxPoolWithIndices, &kMaxPoolBackward, &kMaxPoolGather, &kAvgPool,
        &kAvgPoolBackward, &kAdaptiveAvgPool, &kAdaptiveAvgPoolBackward})
    table.add(*op);
}

namespace {

MaxPoolAttrs max_pool_attrs(const char* name, int64_t num_dims, const Ints& kernel,
                            const MaxPoolOptions& options) {
  const Ints& stride = options.stride.empty() ? kernel : options.stride;
  return {.kernel = spatial_numbers(kernel, num_dims, 1, 1, name, "kernel"),
          .stride = spatial_numbers(stride, num_dims, 1, 1, name, "stride"),
          .padding = spatial_numbers(options.padding, num_dims, 0, 0, name, "padding"),
          .dilation = spatial_numbers(options.dilation, num_dims, 1, 1, name, "dilation"),
          .ceil_mode = options.ceil_mode};
}

// The window of one dim as the window of the second of two dims.
SpatialInts as_width(const SpatialInts& of_length, int64_t unused) {
  return {unused, of_length[0], unused};
}

MaxPoolAttrs max_length_attrs(const char* name, const Ints& kernel, const MaxPoolOptions& options) {
  MaxPoolAttrs attrs = max_pool_attrs(name, 1, kernel, options);
  attrs.kernel = as_width(attrs.kernel, 1);
  attrs.stride = as_width(attrs.stride, 1);
  attrs.padding = as_width(attrs.padding, 0);
  attrs.dilation = as_width(attrs.dilation, 1);
  return attrs;
}

// Maxima of the rows of a plane of height 1; in it, an index is a position in the row.
ValuesIndices along_length(const TensorArg& x, const MaxPoolAttrs& attrs) {
  const Tensor plane = x->unsqueeze(-2, x.site());
  const auto [values, indices] = dispatch_multi<2>(kMaxPoolWithIndices, {&plane}, attrs, x.site());
  return {values.squeeze(-2, x.site()), indices.squeeze(-2, x.site())};
}

AvgPoolAttrs avg_pool_attrs(const char* name, int64_t num_dims, const Ints& kernel,
                            const AvgPoolOptions& options) {
  const Ints& stride = options.stride.empty() ? kernel : options.stride;
  if (options.divisor_override && *options.divisor_override == 0) {
    throw InvalidArgument(str("[", name, "] divisor_override must not be 0; leave it unset to ",
                              "divide by the number of elements"));
  }
  return {.kernel = spatial_numbers(kernel, num_dims, 1, 1, name, "kernel"),
          .stride = spatial_numbers(stride, num_dims, 1, 1, name, "stride"),
          .padding = spatial_numbers(options.padding, num_dims, 0, 0, name, "padding"),
          .ceil_mode = options.ceil_mode,
          .count_include_pad = options.count_include_pad,
          .divisor = options.divisor_override.value_or(0)};
}

void check_length_input(const char* name, const Tensor& x) {
  if (x.dim() != 2 && x.dim() != 3) {
    throw InvalidArgument(
        str("[", name, "] takes (N, C, L) or (C, L); received ", x.meta(), "; add a dim"));
  }
}

}  // namespace
}  // namespace ops

Tensor max_pool2d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options) {
  return ops::named("max_pool2d", x.site(), [&]() -> Tensor {
    const ops::MaxPoolAttrs attrs =
        ops::max_pool_attrs("max_pool2d", ops::kNumDims, kernel, options);
    return dispatch(ops::kMaxPool, {&x.tensor()}, attrs, x.site());
  });
}

ValuesIndices max_pool2d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options) {
  return ops::named("max_pool2d_with_indices", x.site(), [&]() -> ValuesIndices {
    const ops::MaxPoolAttrs attrs =
        ops::max_pool_attrs("max_pool2d_with_indices", ops::kNumDims, kernel, options);
    auto [values, indices] =
        dispatch_multi<2>(ops::kMaxPoolWithIndices, {&x.tensor()}, attrs, x.site());
    return {std::move(values), std::move(indices)};
  });
}

Tensor max_pool1d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options) {
  return ops::named("max_pool1d", x.site(), [&]() -> Tensor {
    ops::check_length_input("max_pool1d", x);
    const ops::MaxPoolAttrs attrs = ops::max_length_attrs("max_pool1d", kernel, options);
    const Tensor plane = x->unsqueeze(-2, x.site());
    return dispatch(ops::kMaxPool, {&plane}, attrs, x.site()).squeeze(-2, x.site());
  });
}

ValuesIndices max_pool1d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options) {
  return ops::named("max_pool1d_with_indices", x.site(), [&]() -> ValuesIndices {
    constexpr const char* kName = "max_pool1d_with_indices";
    ops::check_length_input(kName, x);
    return ops::along_length(x, ops::max_length_attrs(kName, kernel, options));
  });
}

Tensor avg_pool2d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options) {
  return ops::named("avg_pool2d", x.site(), [&]() -> Tensor {
    const ops::AvgPoolAttrs attrs =
        ops::avg_pool_attrs("avg_pool2d", ops::kNumDims, kernel, options);
    return dispatch(ops::kAvgPool, {&x.tensor()}, attrs, x.site());
  });
}

Tensor avg_pool1d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options) {
  return ops::named("avg_pool1d", x.site(), [&]() -> Tensor {
    ops::check_length_input("avg_pool1d", x);
    if (options.divisor_override) {
      throw InvalidArgument(
          "[avg_pool1d] divisor_override is not supported; received one; use avg_pool2d with "
          "height 1",
          x.site());
    }
    ops::AvgPoolAttrs attrs = ops::avg_pool_attrs("avg_pool1d", 1, kernel, options);
    attrs.kernel = ops::as_width(attrs.kernel, 1);
    attrs.stride = ops::as_width(attrs.stride, 1);
    attrs.padding = ops::as_width(attrs.padding, 0);
    const Tensor plane = x->unsqueeze(-2, x.site());
    return dispatch(ops::kAvgPool, {&plane}, attrs, x.site()).squeeze(-2, x.site());
  });
}

namespace {

ops::MaxPoolAttrs adaptive_attrs(const char* name, const TensorArg& x, const Ints& size,
                                 int64_t num_dims) {
  if (x->dim() != num_dims + 1 && x->dim() != num_dims + 2) {
    throw InvalidArgument(str("[", name, "] takes ", num_dims,
                              " spatial dims after (N, C) or (C); received ", x->meta()),
                          x.site());
  }
  const ops::SpatialInts out = ops::spatial_numbers(size, num_dims, 0, 1, name, "size");
  ops::MaxPoolAttrs attrs;
  attrs.adaptive = num_dims == 1 ? ops::as_width(out, 1) : out;
  return attrs;
}

}  // namespace

Tensor adaptive_avg_pool1d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_avg_pool1d", x.site(), [&]() -> Tensor {
    const auto out = ops::spatial_numbers(size, 1, 0, 1, "adaptive_avg_pool1d", "size");
    if (x->dim() != 2 && x->dim() != 3) {
      throw InvalidArgument(
          str("[adaptive_avg_pool1d] takes (N, C, L) or (C, L); received ", x->meta()), x.site());
    }
    const Tensor plane = unsqueeze(x, -2);
    return squeeze({adaptive_avg_pool2d({plane, x.site()}, {1, out[0]}), x.site()}, -2);
  });
}

Tensor adaptive_max_pool1d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool1d", x.site(), [&]() -> Tensor {
    const ops::MaxPoolAttrs attrs = adaptive_attrs("adaptive_max_pool1d", x, size, 1);
    const Tensor plane = x->unsqueeze(-2, x.site());
    return dispatch(ops::kMaxPool, {&plane}, attrs, x.site()).squeeze(-2, x.site());
  });
}

Tensor adaptive_max_pool2d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool2d", x.site(), [&]() -> Tensor {
    const ops::MaxPoolAttrs attrs = adaptive_attrs("adaptive_max_pool2d", x, size, ops::kNumDims);
    return dispatch(ops::kMaxPool, {&x.tensor()}, attrs, x.site());
  });
}

ValuesIndices adaptive_max_pool1d_with_indices(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool1d_with_indices", x.site(), [&]() -> ValuesIndices {
    return ops::along_length(x, adaptive_attrs("adaptive_max_pool1d_with_indices", x, size, 1));
  });
}

ValuesIndices adaptive_max_pool2d_with_indices(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool2d_with_indices", x.site(), [&]() -> ValuesIndices {
    const ops::MaxPoolAttrs attrs =
        adaptive_attrs("adaptive_max_pool2d_with_indices", x, size, ops::kNumDims);
    auto [values, indices] =
        dispatch_multi<2>(ops::kMaxPoolWithIndices, {&x.tensor()}, attrs, x.site());
    return {std::move(values), std::move(indices)};
  });
}

Tensor adaptive_avg_pool2d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_avg_pool2d", x.site(), [&]() -> Tensor {
    const ops::AdaptivePoolAttrs attrs{
        ops::spatial_numbers(size, ops::kNumDims, 0, 0, "adaptive_avg_pool2d", "size")};
    // Means over no windows are equal to maxima over none, gradient included.
    if (attrs.size[0] == 0 || attrs.size[1] == 0) return adaptive_max_pool2d(x, size);
    return dispatch(ops::kAdaptiveAvgPool, {&x.tensor()}, attrs, x.site());
  });
}

}  // namespace flow
