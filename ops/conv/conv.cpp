#include "ops/conv/conv.h"

#include <algorithm>
#include <optional>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/conv/conv_op.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {

double ConvSizes::volume() const {
  const int64_t group_channels = in_channels / std::max<int64_t>(groups, 1);
  const double products = static_cast<double>(batch) * static_cast<double>(out_channels) *
                          static_cast<double>(group_channels);
  return products * static_cast<double>(out_size()) * static_cast<double>(kernel_size());
}

ConvSizes conv_sizes(const Shape& x, const Shape& weight, const Shape& y, const ConvAttrs& attrs) {
  ConvSizes sizes;
  sizes.batch = x[0];
  sizes.in_channels = x[1];
  sizes.out_channels = y[1];
  sizes.groups = weight[1] == 0 ? 1 : x[1] / weight[1];
  sizes.num_dims = static_cast<int>(x.size()) - 2;
  const auto missing = static_cast<size_t>(kMaxSpatialDims - sizes.num_dims);
  for (size_t i = 0; i + missing < kMaxSpatialDims; ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    sizes.window[i + missing] = {.in = x[dim],
                                 .out = y[dim],
                                 .kernel = weight[dim],
                                 .stride = attrs.stride[i],
                                 .dilation = attrs.dilation[i],
                                 .padding = attrs.padding[i]};
  }
  return sizes;
}

namespace {

// The tensors that each op reads and writes. All ops are derivatives of one trilinear form
//   sum over n, o, c, p, k of y[n, o, p] weight[o, c, k] x[n, c, p stride - padding + k dilation]
// with respect to the tensor that is written.
struct Roles {
  Shape x, weight, y;
};

Roles roles_of(const SbpContext& ctx) {
  if (&ctx.op() == &kConv) return {ctx.input(0).shape, ctx.input(1).shape, ctx.output(0).shape};
  if (&ctx.op() == &kConvBackwardInput) {
    return {ctx.output(0).shape, ctx.input(1).shape, ctx.input(0).shape};
  }
  return {ctx.input(0).shape, ctx.output(0).shape, ctx.input(1).shape};
}

SpatialInts spatial_dims(const Shape& shape) {
  SpatialInts dims{};
  std::copy(shape.begin() + 2, shape.end(), dims.begin());
  return dims;
}

ConvAttrs with_size(ConvAttrs attrs, const SpatialInts& size) {
  attrs.size = size;
  return attrs;
}

void check_operands(const OpContext& ctx, const char* first, const char* second) {
  const TensorMeta& a = ctx.input(0);
  const TensorMeta& b = ctx.input(1);
  ctx.check(is_floating(a.dtype), "takes floating dtypes; cast the operands");
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(!ctx.has_input(i) || ctx.input(i).dtype == a.dtype,
              "operands have different dtypes; cast one of them");
  }
  ctx.check(a.dim() >= 3 && a.dim() <= 2 + kMaxSpatialDims, first,
            " must have a batch dim, a channel dim and one to three spatial dims");
  ctx.check(b.dim() == a.dim(), first, " and ", second, " must have the same number of dims");
}

void check_channels(const OpContext& ctx, int64_t in_channels, const Shape& weight,
                    int64_t groups) {
  ctx.check(in_channels == weight[1] * groups, "x has ", in_channels, " channels, weight ", weight,
            " with groups ", groups, " expects ", weight[1] * groups,
            "; change in_channels or groups");
  ctx.check(weight[0] % groups == 0, "the ", weight[0],
            " output channels must be divisible by groups ", groups);
}

// The spatial sizes of y.
Shape window_counts(const OpContext& ctx, const Shape& x, const Shape& weight) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  Shape counts;
  for (int64_t i = 2; i < x.size(); ++i) {
    const auto at = static_cast<size_t>(i - 2);
    ctx.check(weight[i] > 0, "the kernel needs at least one tap in each dim; weight is ", weight);
    const int64_t reach = attrs.dilation[at] * (weight[i] - 1) + 1;
    const int64_t padded = x[i] + attrs.padding[at] + attrs.padding_end[at];
    ctx.check(padded >= reach, "the kernel does not fit: it covers ", reach, " elements of dim ", i,
              ", which has ", padded, " with padding; pad more");
    counts.push_back(count_windows(padded, reach, attrs.stride[at]));
  }
  return counts;
}

void infer_conv(InferContext& ctx) {
  check_operands(ctx, "x", "weight");
  const Shape& x = ctx.input(0).shape;
  const Shape& weight = ctx.input(1).shape;
  check_channels(ctx, x[1], weight, ctx.attrs<ConvAttrs>().groups);
  ctx.check(!ctx.has_input(2) || ctx.input(2).shape == Shape{weight[0]},
            "bias must have one element for each of the ", weight[0], " output channels");
  Shape y{x[0], weight[0]};
  for (const int64_t count : window_counts(ctx, x, weight))
    y.push_back(count);
  ctx.add_output(y, ctx.input(0).dtype);
}

void check_windows(const OpContext& ctx, const Shape& x, const Shape& weight, const Shape& y) {
  const Shape counts = window_counts(ctx, x, weight);
  ctx.check(std::equal(counts.begin(), counts.end(), y.begin() + 2, y.end()), "dy has ",
            Shape(std::span(y).subspan(2)), " windows, but the convolution gives ", counts);
}

void infer_backward_input(InferContext& ctx) {
  check_operands(ctx, "dy", "weight");
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Shape& dy = ctx.input(0).shape;
  const Shape& weight = ctx.input(1).shape;
  ctx.check(dy[1] == weight[0], "dy has ", dy[1], " channels, weight gives ", weight[0]);
  Shape dx{dy[0], weight[1] * attrs.groups};
  for (int64_t i = 2; i < dy.size(); ++i)
    dx.push_back(attrs.size[static_cast<size_t>(i - 2)]);
  check_channels(ctx, dx[1], weight, attrs.groups);
  check_windows(ctx, dx, weight, dy);
  ctx.add_output(dx, ctx.input(0).dtype);
}

void infer_backward_weight(InferContext& ctx) {
  check_operands(ctx, "x", "dy");
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Shape& x = ctx.input(0).shape;
  const Shape& dy = ctx.input(1).shape;
  ctx.check(x[0] == dy[0], "batch sizes differ: x has ", x[0], ", dy ", dy[0]);
  Shape weight{dy[1], x[1] / attrs.groups};
  for (int64_t i = 2; i < x.size(); ++i)
    weight.push_back(attrs.size[static_cast<size_t>(i - 2)]);
  check_channels(ctx, x[1], weight, attrs.groups);
  check_windows(ctx, x, weight, dy);
  ctx.add_output(weight, ctx.input(0).dtype);
  if (&ctx.op() == &kConvBackwardWeightBias) ctx.add_output({dy[1]}, ctx.input(0).dtype);
}

// ---- SBP

// One index of the trilinear form: its dim in each tensor, or none where the index does not occur.
struct SplitIndex {
  std::optional<int64_t> x, weight, y;
};

// True if a rank whose part of y is empty has a part of x in which a window would fit: its sizes
// are not those of a convolution.
bool has_spare_window(const WindowDim& window, int64_t num_ranks) {
  for (int64_t r = 0; r < num_ranks; ++r) {
    if (balanced_part(window.out, num_ranks, r).size == 0 &&
        balanced_part(window.in, num_ranks, r).size >= window.reach())
      return true;
  }
  return false;
}

// The indices whose range may be split so that each rank's sizes form a convolution again.
std::vector<SplitIndex> split_indices(const SbpContext& ctx) {
  const Roles roles = roles_of(ctx);
  const ConvSizes sizes = conv_sizes(roles.x, roles.weight, roles.y, ctx.attrs<ConvAttrs>());
  std::vector<SplitIndex> indices{{.x = 0, .weight = {}, .y = 0}};
  const bool one_channel_each =
      sizes.in_channels == sizes.groups && sizes.out_channels == sizes.groups;
  if (sizes.groups == 1) {
    indices.push_back({.x = {}, .weight = 0, .y = 1});
    indices.push_back({.x = 1, .weight = 1, .y = {}});
  } else if (one_channel_each || (ctx.num_ranks() > 0 && sizes.groups % ctx.num_ranks() == 0)) {
    indices.push_back({.x = 1, .weight = 0, .y = 1});
  }
  for (int64_t dim = 2; dim < roles.x.size(); ++dim) {
    const auto at = static_cast<size_t>(dim - 2 + kMaxSpatialDims - sizes.num_dims);
    const WindowDim& window = sizes.window[at];
    if (splits_between_windows(window, ctx.num_ranks()) &&
        !has_spare_window(window, ctx.num_ranks())) {
      indices.push_back({.x = dim, .weight = {}, .y = dim});
    }
    // One dense window over the whole dim is a product that contracts it.
    if (window.padding == 0 && window.dilation == 1 && window.kernel == window.in &&
        window.out == 1) {
      indices.push_back({.x = dim, .weight = dim, .y = {}});
    }
  }
  return indices;
}

Sbp input_sbp(const std::optional<int64_t>& dim) {
  return dim ? sbp::split(*dim) : sbp::broadcast;
}

// The layout of a tensor that is summed over the index.
Sbp output_sbp(const std::optional<int64_t>& dim) {
  return dim ? sbp::split(*dim) : sbp::partial_sum;
}

// The layout of a bias or its gradient for a given layout of y: it has the channels of y, and is
// broadcast over the other elements of y, or is their sum.
Sbp bias_sbp(const std::optional<int64_t>& y_dim, Sbp otherwise) {
  return y_dim == 1 ? sbp::split(0) : otherwise;
}

// The form is linear in each tensor. A bias is added once, so it is partial wherever y is; y
// increases with it.
void sbp_conv(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum;
  const bool has_bias = ctx.has_input(2);
  const Sbp partial_bias = has_bias ? partial_sum : broadcast;
  for (const SplitIndex& index : split_indices(ctx)) {
    const Sbp bias = bias_sbp(index.y, index.y ? broadcast : partial_sum);
    ctx.add({input_sbp(index.x), input_sbp(index.weight), has_bias ? bias : broadcast},
            {output_sbp(index.y)});
  }
  ctx.add({partial_sum, broadcast, partial_bias}, {partial_sum});
  ctx.add({broadcast, partial_sum, partial_bias}, {partial_sum});
  if (!has_bias) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({broadcast, broadcast, partial}, {partial});
}

void sbp_backward_input(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum;
  for (const SplitIndex& index : split_indices(ctx))
    ctx.add({input_sbp(index.y), input_sbp(index.weight)}, {output_sbp(index.x)});
  ctx.add({partial_sum, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum}, {partial_sum});
}

// db sums dy only: it is whole where dy is whole, and partial where dy is split or partial.
void sbp_backward_weight(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum;
  const auto add = [&](Sbp x, Sbp dy, Sbp dw, Sbp db) {
    if (ctx.num_outputs() == 1) {
      ctx.add({x, dy}, {dw});
    } else {
      ctx.add({x, dy}, {dw, db});
    }
  };
  for (const SplitIndex& index : split_indices(ctx)) {
    add(input_sbp(index.x), input_sbp(index.y), output_sbp(index.weight),
        bias_sbp(index.y, index.y ? partial_sum : broadcast));
  }
  add(partial_sum, broadcast, partial_sum, broadcast);
  add(broadcast, partial_sum, partial_sum, partial_sum);
}

Cost conv_cost(const SbpContext& ctx) {
  const Roles roles = roles_of(ctx);
  return {.flops = 2 * conv_sizes(roles.x, roles.weight, roles.y, ctx.attrs<ConvAttrs>()).volume()};
}

// ---- gradients

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvAttrs& attrs) {
  return dispatch(kConv, {&x, &weight, &bias}, with_size(attrs, {}), Site::here());
}

Tensor backward_input(const Tensor& dy, const Tensor& weight, const ConvAttrs& attrs,
                      const Shape& x) {
  return dispatch(kConvBackwardInput, {&dy, &weight}, with_size(attrs, spatial_dims(x)),
                  Site::here());
}

Tensor backward_weight(const Tensor& x, const Tensor& dy, const ConvAttrs& attrs,
                       const Shape& weight) {
  return dispatch(kConvBackwardWeight, {&x, &dy}, with_size(attrs, spatial_dims(weight)),
                  Site::here());
}

// All dims except the channels.
Ints all_but_channels(int64_t num_dims) {
  std::vector<int64_t> dims{0};
  for (int64_t i = 2; i < num_dims; ++i)
    dims.push_back(i);
  return dims;
}

// y = w * x + b:  dx and dw differentiate the trilinear form,  db = dy summed over all but o.
void grad_conv(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Shape& weight = ctx.input_meta(1)->shape;
  if (ctx.needs(0)) {
    ctx.set(0, backward_input(dy, ctx.input(1), attrs, ctx.input_meta(0)->shape));
  }
  const bool needs_bias = ctx.num_inputs() > 2 && ctx.needs(2);
  if (ctx.needs(1) && needs_bias) {
    const Tensor x = ctx.input(0);
    auto [dw, db] = dispatch_multi<2>(kConvBackwardWeightBias, {&x, &dy},
                                      with_size(attrs, spatial_dims(weight)), Site::here());
    ctx.set(1, std::move(dw));
    ctx.set(2, std::move(db));
  } else if (ctx.needs(1)) {
    ctx.set(1, backward_weight(ctx.input(0), dy, attrs, weight));
  } else if (needs_bias) {
    ctx.set(2, sum(dy, all_but_channels(dy.dim())));
  }
}

// dx = f(dy, w), linear in both; g = gradient of dx:  d(dy) = w * g,  dw = f'(g, dy).
void grad_backward_input(GradContext& ctx) {
  const Tensor& g = ctx.dy();
  if (!g.defined()) return;
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (ctx.needs(0)) ctx.set(0, conv(g, ctx.input(1), Tensor(), attrs));
  if (ctx.needs(1)) {
    ctx.set(1, backward_weight(g, ctx.input(0), attrs, ctx.input_meta(1)->shape));
  }
}

// dw = f(x, dy), linear in both, db = sum of dy; g, h = gradients of dw, db:
// dx = f'(dy, g),  d(dy) = g * x + h.
void grad_backward_weight(GradContext& ctx) {
  const Tensor& g = ctx.dy(0);
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (ctx.needs(0) && g.defined()) {
    ctx.set(0, backward_input(ctx.input(1), g, attrs, ctx.input_meta(0)->shape));
  }
  if (ctx.needs(1) && g.defined()) ctx.set(1, conv(ctx.input(0), g, Tensor(), attrs));
}

void grad_backward_weight_bias(GradContext& ctx) {
  const Tensor& h = ctx.dy(1);
  if (!h.defined()) return grad_backward_weight(ctx);
  const Tensor& g = ctx.dy(0);
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (ctx.needs(0) && g.defined()) {
    ctx.set(0, backward_input(ctx.input(1), g, attrs, ctx.input_meta(0)->shape));
  }
  if (!ctx.needs(1)) return;
  if (g.defined()) {
    ctx.set(1, conv(ctx.input(0), g, h, attrs));
  } else {
    const Shape& dy = ctx.input_meta(1)->shape;
    Shape channels = Shape::filled(dy.size(), 1);
    channels[1] = dy[1];
    ctx.set(1, expand(reshape(h, channels), dy));
  }
}

}  // namespace

const OpDef kConv{.name = "conv",
                  .num_inputs = 3,
                  .attrs = attrs_def<ConvAttrs>(),
                  .infer = infer_conv,
                  .sbp = sbp_conv,
                  .grad = grad_conv,
                  .cost = conv_cost,
                  .saved_inputs = 0b011,
                  .autocast = AutocastRule::kLower};

const OpDef kConvBackwardInput{.name = "conv_backward_input",
                               .num_inputs = 2,
                               .attrs = attrs_def<ConvAttrs>(),
                               .infer = infer_backward_input,
                               .sbp = sbp_backward_input,
                               .grad = grad_backward_input,
                               .cost = conv_cost,
                               .saved_inputs = 0b11,
                               .autocast = AutocastRule::kLower};

const OpDef kConvBackwardWeight{.name = "conv_backward_weight",
                                .num_inputs = 2,
                                .attrs = attrs_def<ConvAttrs>(),
                                .infer = infer_backward_weight,
                                .sbp = sbp_backward_weight,
                                .grad = grad_backward_weight,
                                .cost = conv_cost,
                                .saved_inputs = 0b11};

const OpDef kConvBackwardWeightBias{.name = "conv_backward_weight_bias",
                                    .num_inputs = 2,
                                    .num_outputs = 2,
                                    .attrs = attrs_def<ConvAttrs>(),
                                    .infer = infer_backward_weight,
                                    .sbp = sbp_backward_weight,
                                    .grad = grad_backward_weight_bias,
                                    .cost = conv_cost,
                                    .saved_inputs = 0b11};

void register_conv(OpTable& table);

void register_conv(OpTable& table) {
  for (const OpDef* op :
       {&kConv, &kConvBackwardInput, &kConvBackwardWeight, &kConvBackwardWeightBias})
    table.add(*op);
}

namespace {

// Zeros before and after each spatial dim of x.
void set_padding(ConvAttrs& attrs, const Padding& padding, const Shape& x, const Shape& weight,
                 const char* name) {
  const int64_t num_dims = weight.size() - 2;
  if (padding.mode() == Padding::Mode::kNumbers) {
    attrs.padding = spatial_numbers(padding.numbers(), num_dims, 0, 0, name, "padding");
    attrs.padding_end = attrs.padding;
  } else if (padding.mode() == Padding::Mode::kSame) {
    for (int64_t i = 0; i < num_dims; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t in = x[x.size() - num_dims + i];
      const int64_t stride = attrs.stride[at];
      const int64_t out = (in + stride - 1) / stride;
      const int64_t reach = attrs.dilation[at] * (weight[2 + i] - 1) + 1;
      const int64_t total = std::max<int64_t>((out - 1) * stride + reach - in, 0);
      attrs.padding[at] = total / 2;
      attrs.padding_end[at] = total - total / 2;
    }
  }
}

void check_dims(const char* name, const Tensor& x, const Tensor& weight, int64_t num_dims) {
  const bool fits =
      weight.dim() == num_dims + 2 && (x.dim() == num_dims + 2 || x.dim() == num_dims + 1);
  if (!fits) {
    throw InvalidArgument(str("[", name, "] takes x of ", num_dims + 2, " dims (", num_dims + 1,
                              " without batch) and weight of ", num_dims + 2, "; received ",
                              x.meta(), ", ", weight.meta()));
  }
}

int64_t checked_groups(const char* name, int64_t groups) {
  if (groups < 1) {
    throw InvalidArgument(
        str("[", name, "] groups must be at least 1; received ", groups, "; use 1 for none"));
  }
  return groups;
}

// Integer operands are convolved in float64, which is exact for sums below 2^53.
bool are_integers(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType dtype = x.dtype();
  return !is_floating(dtype) && dtype != DType::kBool && weight.dtype() == dtype &&
         (!bias.defined() || bias.dtype() == dtype);
}

Tensor conv_of(const char* name, int64_t num_dims, const TensorArg& x, const TensorArg& weight,
               const Tensor& bias, const ConvOptions& options) {
  check_dims(name, x, weight, num_dims);
  if (are_integers(x, weight, bias)) {
    const Site site = x.site();
    const auto wide = [&](const Tensor& operand) {
      return operand.defined() ? cast({operand, site}, DType::kFloat64) : operand;
    };
    const Tensor y = conv_of(name, num_dims, {wide(x), site}, wide(weight), wide(bias), options);
    return cast({cast({y, site}, DType::kInt64), site}, x->dtype());
  }
  ConvAttrs attrs;
  attrs.stride = spatial_numbers(options.stride, num_dims, 1, 1, name, "stride");
  attrs.dilation = spatial_numbers(options.dilation, num_dims, 1, 1, name, "dilation");
  attrs.groups = checked_groups(name, options.groups);
  set_padding(attrs, options.padding, x->shape(), weight->shape(), name);
  if (x->dim() == num_dims + 2) {
    return dispatch(kConv, {&x.tensor(), &weight.tensor(), &bias}, attrs, x.site());
  }
  const Tensor batch = x->unsqueeze(0, x.site());
  return dispatch(kConv, {&batch, &weight.tensor(), &bias}, attrs, x.site()).squeeze(0, x.site());
}

Tensor conv_transpose_of(const char* name, int64_t num_dims, const TensorArg& x,
                         const TensorArg& weight, const Tensor& bias,
                         const ConvTransposeOptions& options) {
  check_dims(name, x, weight, num_dims);
  ConvAttrs attrs;
  attrs.stride = spatial_numbers(options.stride, num_dims, 1, 1, name, "stride");
  attrs.dilation = spatial_numbers(options.dilation, num_dims, 1, 1, name, "dilation");
  attrs.padding = spatial_numbers(options.padding, num_dims, 0, 0, name, "padding");
  attrs.groups = checked_groups(name, options.groups);
  const SpatialInts more =
      spatial_numbers(options.output_padding, num_dims, 0, 0, name, "output_padding");
  for (size_t i = 0; i < static_cast<size_t>(num_dims); ++i) {
    if (more[i] >= std::max(attrs.stride[i], attrs.dilation[i])) {
      throw InvalidArgument(
          str("[", name, "] output_padding must be smaller than stride or ", "dilation; received ",
              more[i], " with stride ", attrs.stride[i], " and dilation ", attrs.dilation[i]),
          x.site());
    }
    const auto dim = static_cast<int64_t>(i);
    const int64_t reach = attrs.dilation[i] * (weight->shape()[2 + dim] - 1) + 1;
    attrs.size[i] =
        (x->size(dim - num_dims) - 1) * attrs.stride[i] - 2 * attrs.padding[i] + reach + more[i];
    // If output_padding is at least a stride, the padding at the end is reduced, because one more
    // window would fit otherwise.
    attrs.padding_end[i] = attrs.padding[i] - std::max<int64_t>(more[i] - attrs.stride[i] + 1, 0);
    if (attrs.size[i] < 1) {
      throw InvalidArgument(
          str("[", name, "] the output would have size ", attrs.size[i], " in dim ", 2 + i,
              "; received x ", x->shape(), ", padding ", attrs.padding[i], "; pad less"),
          x.site());
    }
  }
  const int64_t channels = weight->shape()[1] * attrs.groups;
  if (x->size(-num_dims - 1) != weight->size(0) || weight->size(0) % attrs.groups != 0 ||
      (bias.defined() && bias.shape() != Shape{channels})) {
    throw InvalidArgument(
        str("[", name, "] takes x (N, C, in...), weight (C, O / groups, kernel...) ",
            "with C divisible by groups, bias (O); received ", x->meta(), ", ", weight->meta(),
            bias.defined() ? str(", ", bias.meta()) : "", ", groups ", attrs.groups),
        x.site());
  }
  const bool is_single = x->dim() == num_dims + 1;
  const Tensor batch = is_single ? x->unsqueeze(0, x.site()) : x.tensor();
  Tensor y = dispatch(kConvBackwardInput, {&batch, &weight.tensor()}, attrs, x.site());
  if (bias.defined()) {
    Shape per_channel = Shape::filled(num_dims + 1, 1);
    per_channel[0] = bias.numel();
    const Tensor added = autocast({bias, x.site()}, kConvBackwardInput.autocast);
    if (added.dtype() != y.dtype()) {
      throw InvalidArgument(str("[", name, "] operands have different dtypes; cast one of them; ",
                                "received ", x->meta(), ", ", weight->meta(), ", ", bias.meta()),
                            x.site());
    }
    y = add({y, x.site()}, {reshape(added, per_channel), x.site()});
  }
  return is_single ? y.squeeze(0, x.site()) : y;
}

}  // namespace
}  // namespace ops

Tensor conv1d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options) {
  return ops::named("conv1d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv1d", 1, x, weight, bias, options);
  });
}

Tensor conv1d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options) {
  return ops::named("conv1d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv1d", 1, x, weight, Tensor(), options);
  });
}

Tensor conv_tbc(const TensorArg& x, const TensorArg& weight, const TensorArg& bias, int64_t pad) {
  return ops::named("conv_tbc", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() != 3 || weight->dim() != 3) {
      throw InvalidArgument(str("[conv_tbc] takes x (T, N, C) and weight (kernel, C, O); received ",
                                x->meta(), ", ", weight->meta()),
                            site);
    }
    const Tensor lines = permute(x, {1, 2, 0});
    const Tensor taps = permute(weight, {2, 1, 0});
    const Tensor y =
        ops::conv_of("conv_tbc", 1, {lines, site}, {taps, site}, bias.tensor(), {.padding = pad});
    return permute({y, site}, {2, 0, 1});
  });
}

Tensor conv2d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options) {
  return ops::named("conv2d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv2d", 2, x, weight, bias, options);
  });
}

Tensor conv2d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options) {
  return ops::named("conv2d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv2d", 2, x, weight, Tensor(), options);
  });
}

Tensor conv3d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
              const ConvOptions& options) {
  return ops::named("conv3d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv3d", 3, x, weight, bias, options);
  });
}

Tensor conv3d(const TensorArg& x, const TensorArg& weight, const ConvOptions& options) {
  return ops::named("conv3d", x.site(), [&]() -> Tensor {
    return ops::conv_of("conv3d", 3, x, weight, Tensor(), options);
  });
}

Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose1d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose1d", 1, x, weight, bias, options);
  });
}

Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose1d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose1d", 1, x, weight, Tensor(), options);
  });
}

Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose2d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose2d", 2, x, weight, bias, options);
  });
}

Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose2d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose2d", 2, x, weight, Tensor(), options);
  });
}

Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight, const TensorArg& bias,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose3d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose3d", 3, x, weight, bias, options);
  });
}

Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight,
                        const ConvTransposeOptions& options) {
  return ops::named("conv_transpose3d", x.site(), [&]() -> Tensor {
    return ops::conv_transpose_of("conv_transpose3d", 3, x, weight, Tensor(), options);
  });
}

}  // namespace flow
