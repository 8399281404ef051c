#include "ops/norm/norm.h"

#include <initializer_list>

#include "core/context.h"
#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/norm/group_norm_op.h"
#include "ops/norm/norm_op.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {
namespace {

// The sizes of the dims that are normalised.
Shape normalized_shape(const Shape& x, const NormAttrs& attrs) {
  Shape shape;
  for (int64_t i = x.size() - attrs.num_dims; i < x.size(); ++i)
    shape.push_back(x[i]);
  return shape;
}

// x is input `x`; parameters, from input `first` on, are optional.
void check_inputs(const OpContext& ctx, const NormAttrs& attrs, int x, int first, int count) {
  const TensorMeta& meta = ctx.input(x);
  ctx.check(is_floating(meta.dtype), "takes a floating dtype; cast the input");
  ctx.check(attrs.num_dims >= 1 && attrs.num_dims <= meta.dim(), "normalises ", attrs.num_dims,
            " trailing dims, but the input has ", meta.dim(), " dims; name at most that many");
  const Shape wanted = normalized_shape(meta.shape, attrs);
  for (int i = first; i < first + count; ++i) {
    if (!ctx.has_input(i)) continue;
    ctx.check(ctx.input(i).shape == wanted && ctx.input(i).dtype == meta.dtype,
              "weight and bias must have the normalised dims' shape ", wanted,
              " and the input's dtype");
  }
}

template <int kParameters>
void infer_norm(InferContext& ctx) {
  check_inputs(ctx, ctx.attrs<NormAttrs>(), 0, 1, kParameters);
  ctx.add_output_like(0);
}

// Rows are independent; the result is linear in weight and bias together and increases with the
// bias.
template <int kParameters>
void sbp_norm(SbpContext& ctx) {
  constexpr size_t kInputs = 1 + kParameters;
  for (int64_t i = 0; i < ctx.input(0).dim() - ctx.attrs<NormAttrs>().num_dims; ++i) {
    std::vector<Sbp> inputs(kInputs, sbp::broadcast);
    inputs[0] = sbp::split(i);
    ctx.add(std::move(inputs), {sbp::split(i)});
  }
  if (kParameters == 2 && ctx.has_input(2)) {
    for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
      ctx.add({sbp::broadcast, sbp::broadcast, partial}, {partial});
  }
  if (!ctx.has_input(1)) return;
  std::vector<Sbp> inputs{sbp::broadcast};
  for (int i = 1; i < static_cast<int>(kInputs); ++i)
    inputs.push_back(ctx.has_input(i) ? sbp::partial_sum : sbp::broadcast);
  ctx.add(std::move(inputs), {sbp::partial_sum});
}

// dx and the gradients of the parameters; x is input 1.
template <int kParameters>
void add_gradients(InferContext& ctx) {
  ctx.add_output_like(1);
  const Shape parameters = normalized_shape(ctx.input(1).shape, ctx.attrs<NormAttrs>());
  for (int i = 0; i < kParameters; ++i)
    ctx.add_output(parameters, ctx.input(1).dtype);
}

bool is_narrow(DType dtype) {
  return is_half(dtype);
}

template <int kParameters>
void infer_backward(InferContext& ctx) {
  check_inputs(ctx, ctx.attrs<NormAttrs>(), 1, 2, 1);
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && ctx.input(0).dtype == ctx.input(1).dtype,
            "the gradient must have the input's shape and dtype");
  add_gradients<kParameters>(ctx);
}

void infer_narrow(InferContext& ctx) {
  const auto& attrs = ctx.attrs<NarrowNormAttrs>();
  check_inputs(ctx, {attrs.num_dims, attrs.eps}, 0, 1, 2);
  ctx.check(ctx.input(0).dtype == DType::kFloat32 && is_narrow(attrs.dtype),
            "makes a 16-bit dtype of float32");
  ctx.add_output(ctx.input(0).shape, attrs.dtype);
}

void infer_narrow_backward(InferContext& ctx) {
  check_inputs(ctx, ctx.attrs<NormAttrs>(), 1, 2, 1);
  ctx.check(ctx.input(0).shape == ctx.input(1).shape && is_narrow(ctx.input(0).dtype) &&
                ctx.input(1).dtype == DType::kFloat32,
            "the gradient must have 16 bits and the shape of the input, which is float32");
  add_gradients<2>(ctx);
}

// Rows are independent, and rounding keeps the order of results. Sums over ranks would be sums of
// rounded results, so they are left to layer_norm.
void sbp_narrow(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim() - ctx.attrs<NarrowNormAttrs>().num_dims; ++i)
    ctx.add({sbp::split(i), sbp::broadcast, sbp::broadcast}, {sbp::split(i)});
  if (!ctx.has_input(2)) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, sbp::broadcast, partial}, {partial});
}

// Rows are independent and are summed in the gradients of the parameters. All gradients are linear
// in dy. dx is linear in the weight; the other gradients do not depend on it.
template <int kParameters>
void sbp_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  constexpr size_t kOutputs = 1 + kParameters;
  for (int64_t i = 0; i < ctx.input(1).dim() - ctx.attrs<NormAttrs>().num_dims; ++i) {
    std::vector<Sbp> outputs(kOutputs, partial_sum);
    outputs[0] = split(i);
    ctx.add({split(i), split(i), broadcast}, std::move(outputs));
  }
  ctx.add({partial_sum, broadcast, broadcast}, std::vector<Sbp>(kOutputs, partial_sum));
  if (!ctx.has_input(2)) return;
  std::vector<Sbp> outputs(kOutputs, broadcast);
  outputs[0] = partial_sum;
  ctx.add({broadcast, broadcast, partial_sum}, std::move(outputs));
}

// Sums over ranks of a gradient of 16 bits were rounded, so they are left to layer_norm_backward.
void sbp_narrow_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  for (int64_t i = 0; i < ctx.input(1).dim() - ctx.attrs<NormAttrs>().num_dims; ++i)
    ctx.add({split(i), split(i), broadcast}, {split(i), partial_sum, partial_sum});
  if (!ctx.has_input(2)) return;
  ctx.add({broadcast, broadcast, partial_sum}, {partial_sum, broadcast, broadcast});
}

template <const OpDef& kBackward, size_t kOutputs>
std::array<Tensor, kOutputs> backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                      const NormAttrs& attrs) {
  return dispatch_multi<kOutputs>(kBackward, {&dy, &x, &weight}, attrs, Site::here());
}

// With h = (x - mean) r, r = 1 / sqrt(var + eps), g = dy weight and m the mean over a row:
// dx = r (g - m(g) - h m(g h)),  dweight = sum(dy h),  dbias = sum(dy) over rows
template <const OpDef& kBackward, size_t kOutputs>
void grad_norm(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor weight = ctx.input_meta(1) != nullptr ? ctx.input(1) : Tensor();
  const auto gradients =
      backward<kBackward, kOutputs>(ctx.dy(), ctx.input(0), weight, ctx.attrs<NormAttrs>());
  for (size_t i = 0; i < kOutputs; ++i) {
    const int input = static_cast<int>(i);
    if (ctx.input_meta(input) != nullptr && ctx.needs(input)) ctx.set(input, gradients[i]);
  }
}

// Means over the normalised dims, kept with size 1.
class RowMean {
 public:
  RowMean(const Shape& shape, const NormAttrs& attrs) {
    std::vector<int64_t> dims;
    for (int64_t i = shape.size() - attrs.num_dims; i < shape.size(); ++i) {
      dims.push_back(i);
      count_ *= static_cast<double>(shape[i]);
    }
    dims_ = Ints(std::move(dims));
  }

  Tensor operator()(const Tensor& x) const { return div(sum(x, dims_, {.keepdim = true}), count_); }

 private:
  Ints dims_;
  double count_ = 1;
};

Tensor add_defined(const Tensor& sum, const Tensor& term) {
  return sum.defined() ? add(sum, term) : term;
}

// A(v) = r (v - m(v) - h m(v h)) is the derivative of h by x applied to v, self-adjoint, and
// dx = A(dy weight). For upstream (u, p, q) of (dx, dweight, dbias):
//   d(dy)   = weight A(u) + p h + q
//   dweight = sum of dy A(u) over rows
//   dx      = A(p dy - r (g m(u h) + u m(g h))) - r^2 h (m(g u) - m(g) m(u) - m(g h) m(u h))
// where r^2 h is minus the derivative of r by x, times the row's length. Without centring
// (rms_norm) the terms m(v), m(u), m(g) vanish.
template <const OpDef& kBackward, size_t kOutputs, bool kCenters>
void grad_backward(GradContext& ctx) {
  const auto& attrs = ctx.attrs<NormAttrs>();
  const Tensor& u = ctx.dy(0);
  const Tensor& p = ctx.dy(1);
  const Tensor q = kOutputs == 3 ? ctx.dy(2) : Tensor();
  const Tensor dy = ctx.input(0);
  const Tensor x = ctx.input(1);
  const Tensor weight = ctx.input_meta(2) != nullptr ? ctx.input(2) : Tensor();
  const RowMean m(x.shape(), attrs);
  const Tensor centred = kCenters ? sub(x, m(x)) : x;
  const Tensor r = rsqrt(add(m(square(centred)), attrs.eps));
  const Tensor h = mul(centred, r);
  const auto apply = [&](const Tensor& v) {
    return backward<kBackward, kOutputs>(v, x, Tensor(), attrs)[0];
  };
  const Tensor applied = u.defined() ? apply(u) : Tensor();
  if (ctx.needs(0)) {
    Tensor result;
    if (u.defined()) result = weight.defined() ? mul(applied, weight) : applied;
    if (p.defined()) result = add_defined(result, mul(h, p));
    if (q.defined()) result = add_defined(result, q.expand(dy.shape()));
    if (result.defined()) ctx.set(0, result);
  }
  if (ctx.needs(1)) {
    Tensor through_h = p.defined() ? mul(dy, p) : Tensor();
    Tensor through_r;
    if (u.defined()) {
      const Tensor g = weight.defined() ? mul(dy, weight) : dy;
      const Tensor uh = m(mul(u, h));
      const Tensor gh = m(mul(g, h));
      through_h = add_defined(through_h, neg(mul(r, add(mul(g, uh), mul(u, gh)))));
      Tensor bracket = sub(m(mul(g, u)), mul(gh, uh));
      if (kCenters) bracket = sub(bracket, mul(m(g), m(u)));
      through_r = neg(mul(mul(square(r), h), bracket));
    }
    if (through_h.defined()) {
      const Tensor result = apply(through_h);
      ctx.set(1, through_r.defined() ? add(result, through_r) : result);
    }
  }
  if (ctx.input_meta(2) != nullptr && ctx.needs(2) && u.defined()) {
    ctx.set(2, sum_to(mul(dy, applied), weight.shape()));
  }
}

Cost cost(const SbpContext& ctx) {
  constexpr double kFlopsPerElement = 8;
  return {.flops = kFlopsPerElement * static_cast<double>(ctx.input(0).numel)};
}

}  // namespace

const OpDef kLayerNorm{.name = "layer_norm",
                       .num_inputs = 3,
                       .attrs = attrs_def<NormAttrs>(),
                       .infer = infer_norm<2>,
                       .sbp = sbp_norm<2>,
                       .grad = grad_norm<kLayerNormBackward, 3>,
                       .cost = cost,
                       .saved_inputs = 0b011,
                       .autocast = AutocastRule::kFloat32};

const OpDef kLayerNormBackward{.name = "layer_norm_backward",
                               .num_inputs = 3,
                               .num_outputs = 3,
                               .attrs = attrs_def<NormAttrs>(),
                               .infer = infer_backward<2>,
                               .sbp = sbp_backward<2>,
                               .grad = grad_backward<kLayerNormBackward, 3, true>,
                               .cost = cost,
                               .saved_inputs = 0b111};

const OpDef kRmsNorm{.name = "rms_norm",
                     .num_inputs = 2,
                     .attrs = attrs_def<NormAttrs>(),
                     .infer = infer_norm<1>,
                     .sbp = sbp_norm<1>,
                     .grad = grad_norm<kRmsNormBackward, 2>,
                     .cost = cost,
                     .saved_inputs = 0b11,
                     .autocast = AutocastRule::kFloat32};

const OpDef kRmsNormBackward{.name = "rms_norm_backward",
                             .num_inputs = 3,
                             .num_outputs = 2,
                             .attrs = attrs_def<NormAttrs>(),
                             .infer = infer_backward<1>,
                             .sbp = sbp_backward<1>,
                             .grad = grad_backward<kRmsNormBackward, 2, false>,
                             .cost = cost,
                             .saved_inputs = 0b111};

const OpDef kLayerNormNarrow{.name = "layer_norm_narrow",
                             .num_inputs = 3,
                             .attrs = attrs_def<NarrowNormAttrs>(),
                             .infer = infer_narrow,
                             .sbp = sbp_narrow,
                             .grad = not_differentiable,
                             .cost = cost};

const OpDef kLayerNormNarrowBackward{.name = "layer_norm_narrow_backward",
                                     .num_inputs = 3,
                                     .num_outputs = 3,
                                     .attrs = attrs_def<NormAttrs>(),
                                     .infer = infer_narrow_backward,
                                     .sbp = sbp_narrow_backward,
                                     .grad = not_differentiable,
                                     .cost = cost};

void register_norm(OpTable& table);

void register_norm(OpTable& table) {
  table.add(kLayerNorm);
  table.add(kLayerNormBackward);
  table.add(kRmsNorm);
  table.add(kRmsNormBackward);
  table.add(kLayerNormNarrow);
  table.add(kLayerNormNarrowBackward);
}

}  // namespace ops

namespace {

void check_normalized_shape(const char* op, const Tensor& x, const Shape& normalized) {
  const int64_t first = x.dim() - normalized.size();
  if (!normalized.empty() && first >= 0 &&
      std::equal(normalized.begin(), normalized.end(), x.shape().begin() + first)) {
    return;
  }
  throw InvalidArgument(str("[", op, "] normalized_shape ", normalized,
                            " does not end the input's shape; received ", x.meta()));
}

// 16-bit rows may have float32 parameters, as those of models do that keep their norms in float32.
// Such rows are normalised as float32.
bool has_wide_parameters(const Tensor& x, std::initializer_list<const Tensor*> parameters) {
  bool is_given = false;
  for (const Tensor* parameter : parameters) {
    if (!parameter->defined()) continue;
    if (parameter->dtype() != DType::kFloat32) return false;
    is_given = true;
  }
  return is_given && is_half(x.dtype()) && thread_state().autocast == nullptr;
}

}  // namespace

Tensor layer_norm(const TensorArg& x, const Shape& normalized_shape,
                  const NormalizationOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    check_normalized_shape("layer_norm", x, normalized_shape);
    if (has_wide_parameters(x, {&options.weight, &options.bias})) {
      const Tensor wide = ops::widened(x);
      const Tensor y = layer_norm({wide, x.site()}, normalized_shape, options);
      return cast({y, x.site()}, x->dtype());
    }
    const ops::NormAttrs attrs{normalized_shape.size(), options.eps};
    return dispatch(ops::kLayerNorm, {&x.tensor(), &options.weight, &options.bias}, attrs,
                    x.site());
  });
}

Tensor rms_norm(const TensorArg& x, const Shape& normalized_shape, const RmsNormOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    check_normalized_shape("rms_norm", x, normalized_shape);
    if (has_wide_parameters(x, {&options.weight})) {
      const Tensor wide = ops::widened(x);
      const Tensor y = rms_norm({wide, x.site()}, normalized_shape, options);
      return cast({y, x.site()}, x->dtype());
    }
    const Tensor rows = ops::autocast(x, ops::kRmsNorm.autocast);
    // Rows of 16 bits are computed in float32, whose epsilon PyTorch takes too.
    const bool is_narrow = dtype_size(rows.dtype()) == 2;
    const DType computed = is_narrow ? DType::kFloat32 : rows.dtype();
    const double eps = options.eps ? *options.eps : machine_epsilon(computed);
    const ops::NormAttrs attrs{normalized_shape.size(), eps};
    return dispatch(ops::kRmsNorm, {&rows, &options.weight}, attrs, x.site());
  });
}

namespace {

void check_groups(const TensorArg& x, int64_t num_groups, const NormalizationOptions& options) {
  const Shape& shape = x->shape();
  if (shape.size() < 2 || num_groups < 1 || shape[1] % num_groups != 0) {
    throw InvalidArgument(str("[group_norm] channels (dim 1) must divide into ", num_groups,
                              " groups; received ", x->meta()),
                          x.site());
  }
  for (const Tensor& parameter : {options.weight, options.bias}) {
    if (!parameter.defined() || parameter.shape() == Shape{shape[1]}) continue;
    throw InvalidArgument(
        str("[group_norm] weight and bias have one element for each of the ", shape[1],
            " channels; received ", parameter.meta(), " for ", x->meta()),
        x.site());
  }
  if (shape.numel() > 0 && shape.numel() == shape[0] * shape[1] &&
      shape[0] * shape[1] == num_groups) {
    throw InvalidArgument(str("[group_norm] a group of one value has no statistics; received ",
                              x->meta(), " and ", num_groups, " groups"),
                          x.site());
  }
}

// True if the op takes the call: its kernels are for CPUs, and channels of several elements.
bool has_kernel(const Tensor& x, const NormalizationOptions& options) {
  const auto fits = [&](const Tensor& parameter) {
    return !parameter.defined() || parameter.dtype() == x.dtype();
  };
  const Shape& shape = x.shape();
  return x.device() == DeviceType::kCpu && is_floating(x.dtype()) && fits(options.weight) &&
         fits(options.bias) && shape.numel() > shape[0] * shape[1];
}

// Groups as rows of layer_norm.
Tensor normalized_rows(const TensorArg& x, int64_t num_groups,
                       const NormalizationOptions& options) {
  const Shape grouped = ops::grouped_shape(x->shape(), num_groups);
  const Tensor rows = reshape(x, grouped);
  Tensor y = layer_norm(TensorArg(rows, x.site()), {grouped[2]}, {.eps = options.eps});
  y = reshape(y, x->shape());
  if (options.weight.defined()) y = mul(y, ops::over_channels(options.weight, x->dim()));
  if (options.bias.defined()) y = add(y, ops::over_channels(options.bias, x->dim()));
  return y;
}

}  // namespace

Tensor group_norm(const TensorArg& x, int64_t num_groups, const NormalizationOptions& options) {
  check_groups(x, num_groups, options);
  if (has_wide_parameters(x, {&options.weight, &options.bias})) {
    const Tensor wide = ops::widened(x);
    const Tensor y = group_norm({wide, x.site()}, num_groups, options);
    return cast({y, x.site()}, x->dtype());
  }
  const Tensor wide = ops::autocast(x, ops::kGroupNorm.autocast);
  if (!has_kernel(wide, options)) return normalized_rows(x, num_groups, options);
  const ops::GroupNormAttrs attrs{x->size(1) / num_groups, options.eps};
  return dispatch(ops::kGroupNorm, {&wide, &options.weight, &options.bias}, attrs, x.site());
}

}  // namespace flow
