#include "ops/elementwise/ternary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/ternary_op.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

constexpr Sbp kB = sbp::broadcast;
constexpr Sbp kP = sbp::partial_sum;

// The operands have one dtype, which the op must accept, and they broadcast.
void infer_operands(InferContext& ctx, bool takes_integers) {
  const DType dtype = ctx.input(0).dtype;
  ctx.check(is_floating(dtype) || (takes_integers && dtype != DType::kBool),
            takes_integers ? "takes numbers; cast first" : "needs a floating dtype; cast first");
  Shape shape = ctx.input(0).shape;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    ctx.check(ctx.input(i).dtype == dtype, "dtypes differ; cast one");
    shape = broadcast_shapes(shape, ctx.input(i).shape, ctx.op().name);
  }
  ctx.add_output(shape, dtype);
}

void infer_numbers(InferContext& ctx) {
  infer_operands(ctx, true);
}

void infer_floating(InferContext& ctx) {
  infer_operands(ctx, false);
}

// Linear in x and a together. The order of x carries over to y. Integers wrap around.
void add_addc_rules(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP, kB}, {kP});
  if (!is_floating(ctx.input(0).dtype)) return;
  for (const Sbp side : {sbp::partial_max, sbp::partial_min})
    ctx.add({side, kB, kB}, {side});
}

void sbp_addcdiv(SbpContext& ctx) {
  add_addc_rules(ctx);
}

void sbp_addcmul(SbpContext& ctx) {
  add_addc_rules(ctx);
  ctx.add({kP, kB, kP}, {kP});
}

// Linear in both ends together.
void sbp_lerp(SbpContext& ctx) {
  elementwise_sbp(ctx);
  ctx.add({kP, kP, kB}, {kP});
}

// Rises in the start if the weight is below 1, and in the end if it is above 0. This holds to the
// last bit only if all terms of the formula that contain it go one way: start + weight d near the
// start, else end + (weight - 1) d, with d = end - start.
void sbp_lerp_scalar(SbpContext& ctx) {
  const auto weight = ctx.attrs<ScalarAttrs>().value.to<double>();
  const bool is_near = std::abs(weight) < 0.5;
  elementwise_sbp(ctx);
  ctx.add({kP, kP}, {kP});
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    const Sbp other = side == sbp::partial_max ? sbp::partial_min : sbp::partial_max;
    if (is_near || weight >= 1) ctx.add({kB, side}, {weight >= 0 ? side : other});
    if (!is_near || weight <= 0) ctx.add({side, kB}, {weight <= 1 ? side : other});
  }
}

// dx of an input that was broadcast: dx summed over the repeats.
void set_unbroadcast(GradContext& ctx, int i, const Tensor& dx) {
  const Shape& shape = ctx.input_meta(i)->shape;
  ctx.set(i, dx.shape() == shape ? dx : sum_to(dx, shape));
}

Tensor times(const Tensor& x, double factor) {
  return factor == 1 ? x : mul(x, factor);
}

// dx = dy, da = value b dy, db = value a dy
void grad_addcmul(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const double value = ctx.attrs<AddcAttrs>().value;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, dy);
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, times(mul(dy, ctx.input(2)), value));
  if (ctx.needs(2)) set_unbroadcast(ctx, 2, times(mul(dy, ctx.input(1)), value));
}

// dx = dy, da = value dy / b, db = -value dy (a / b) / b
void grad_addcdiv(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const double value = ctx.attrs<AddcAttrs>().value;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, dy);
  if (!ctx.needs(1) && !ctx.needs(2)) return;
  const Tensor b = ctx.input(2);
  const Tensor da = times(div(dy, b), value);
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, da);
  if (ctx.needs(2)) set_unbroadcast(ctx, 2, neg(mul(da, div(ctx.input(1), b))));
}

// dstart = (1 - weight) dy, dend = weight dy, dweight = (end - start) dy
void grad_lerp(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, mul(dy, 1 - ctx.input(2)));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, mul(dy, ctx.input(2)));
  if (ctx.needs(2)) set_unbroadcast(ctx, 2, mul(dy, sub(ctx.input(1), ctx.input(0))));
}

void grad_lerp_scalar(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const auto weight = ctx.attrs<ScalarAttrs>().value.to<double>();
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, times(dy, 1 - weight));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, times(dy, weight));
}

}  // namespace

const OpDef kAddcmul{.name = "addcmul",
                     .num_inputs = 3,
                     .attrs = attrs_def<AddcAttrs>(),
                     .infer = infer_numbers,
                     .sbp = sbp_addcmul,
                     .grad = grad_addcmul,
                     .saved_inputs = 0b110,
                     .allows_in_place = true,
                     .autocast = AutocastRule::kWidest};
const OpDef kAddcdiv{.name = "addcdiv",
                     .num_inputs = 3,
                     .attrs = attrs_def<AddcAttrs>(),
                     .infer = infer_floating,
                     .sbp = sbp_addcdiv,
                     .grad = grad_addcdiv,
                     .saved_inputs = 0b110,
                     .allows_in_place = true,
                     .autocast = AutocastRule::kWidest};
const OpDef kLerp{.name = "lerp",
                  .num_inputs = 3,
                  .infer = infer_floating,
                  .sbp = sbp_lerp,
                  .grad = grad_lerp,
                  .saved_inputs = 0b111,
                  .allows_in_place = true};
const OpDef kLerpScalar{.name = "lerp_scalar",
                        .num_inputs = 2,
                        .attrs = attrs_def<ScalarAttrs>(),
                        .infer = infer_floating,
                        .sbp = sbp_lerp_scalar,
                        .grad = grad_lerp_scalar,
                        .allows_in_place = true};

void register_ternary(OpTable& table);

void register_ternary(OpTable& table) {
  for (const OpDef* op : {&kAddcmul, &kAddcdiv, &kLerp, &kLerpScalar})
    table.add(*op);
}

}  // namespace ops

namespace {

template <size_t N>
using Operands = std::array<const Tensor*, N>;

// The operands, cast if they have another dtype.
template <size_t N>
class Promoted {
 public:
  Promoted(const Operands<N>& operands, DType dtype, Site site) : operands_(operands) {
    for (size_t i = 0; i < N; ++i) {
      if (operands[i]->dtype() == dtype) continue;
      casts_[i] = cast({*operands[i], site}, dtype);
      operands_[i] = &casts_[i];
    }
  }

  const Operands<N>& operands() const { return operands_; }

 private:
  Operands<N> operands_;
  std::array<Tensor, N> casts_;
};

int category(DType dtype) {
  if (is_floating(dtype)) return 2;
  return dtype == DType::kBool ? 0 : 1;
}

// As ops::result_dtype, but for any number of tensors: within a category, tensors with dims decide.
template <size_t N>
DType common_dtype(const Operands<N>& operands) {
  std::optional<DType> of_dims;
  std::optional<DType> of_scalars;
  for (const Tensor* operand : operands) {
    std::optional<DType>& side = operand->dim() > 0 ? of_dims : of_scalars;
    side = side ? promote(*side, operand->dtype()) : operand->dtype();
  }
  if (!of_dims || !of_scalars) return of_dims ? *of_dims : *of_scalars;
  return category(*of_scalars) > category(*of_dims) ? *of_scalars : *of_dims;
}

template <size_t N>
Tensor call(const OpDef& op, const Operands<N>& operands, const void* attrs, Site site) {
  const Promoted<N> promoted(operands, common_dtype(operands), site);
  return dispatch_raw(op, promoted.operands(), attrs, site);
}

// Writes over the first operand, whose dtype must hold the result.
template <size_t N>
void call_in_place(const OpDef& op, const Operands<N>& operands, const void* attrs, Site site) {
  const Tensor& x = *operands[0];
  if (category(common_dtype(operands)) > category(x.dtype())) {
    throw InvalidArgument(str("[", ops::in_place_name(op), "] a ", common_dtype(operands),
                              " result does not fit into a tensor of ", x.dtype(),
                              "; use the form without underscore"),
                          site);
  }
  ops::named_in_place(op, [&] {
    const Promoted<N> promoted(operands, x.dtype(), site);
    const bool reads_old =
        std::any_of(operands.begin(), operands.end(),
                    [&](const Tensor* operand) { return ops::reads_old_value(op, {operand}); });
    if (reads_old) {
      ops::write_from_copy({x, site}, [&](const TensorArg& old) {
        Operands<N> inputs = promoted.operands();
        inputs[0] = &old.tensor();
        return dispatch_raw(op, inputs, attrs, site);
      });
      return;
    }
    Tensor output;
    Call written{op, promoted.operands(), attrs, site, 1};
    dispatch(written, &output);
  });
}

ops::AddcAttrs addc_attrs(const char* name, const TensorArg& x, const AddcOptions& options) {
  if (!is_floating(x->dtype()) && options.value != std::floor(options.value)) {
    throw InvalidArgument(str("[", name, "] value is ", options.value, " for a tensor of ",
                              x->dtype(), "; give a whole number or cast to a floating dtype"),
                          x.site());
  }
  return {options.value};
}

void check_quotient(const char* name, const Tensor& a, const Tensor& b, Site site) {
  if (is_floating(a.dtype()) || is_floating(b.dtype())) return;
  throw InvalidArgument(str("[", name, "] divides floating tensors; received ", a.dtype(), " and ",
                            b.dtype(), "; cast one"),
                        site);
}

}  // namespace

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs = addc_attrs("addcmul", x, options);
  return call(ops::kAddcmul, operands, &attrs, x.site());
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  check_quotient("addcdiv", a, b, x.site());
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs{options.value};
  return call(ops::kAddcdiv, operands, &attrs, x.site());
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  const Operands<2> operands{&start.tensor(), &end.tensor()};
  const ops::ScalarAttrs attrs{weight};
  return ops::named("lerp", [&] { return call(ops::kLerpScalar, operands, &attrs, start.site()); });
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Operands<3> operands{&start.tensor(), &end.tensor(), &weight.tensor()};
  return call(ops::kLerp, operands, nullptr, start.site());
}

const Tensor& addcmul_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs = addc_attrs("addcmul_", x, options);
  call_in_place(ops::kAddcmul, operands, &attrs, x.site());
  return x;
}

const Tensor& addcdiv_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  check_quotient("addcdiv_", a, b, x.site());
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs{options.value};
  call_in_place(ops::kAddcdiv, operands, &attrs, x.site());
  return x;
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Operands<3> operands{&start.tensor(), &end.tensor(), &weight.tensor()};
  call_in_place(ops::kLerp, operands, nullptr, start.site());
  return start;
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  const Operands<2> operands{&start.tensor(), &end.tensor()};
  const ops::ScalarAttrs attrs{weight};
  call_in_place(ops::kLerpScalar, operands, &attrs, start.site());
  return start;
}

const Tensor& InPlaceMethods::addcmul_(const TensorArg& a, const TensorArg& b,
                                       const AddcOptions& options) const {
  flow::addcmul_(TensorArg(self(), a.site()), a, b, options);
  return self();
}

const Tensor& InPlaceMethods::addcdiv_(const TensorArg& a, const TensorArg& b,
                                       const AddcOptions& options) const {
  flow::addcdiv_(TensorArg(self(), a.site()), a, b, options);
  return self();
}

const Tensor& InPlaceMethods::lerp_(const TensorArg& end, const TensorArg& weight) const {
  flow::lerp_(TensorArg(self(), end.site()), end, weight);
  return self();
}

const Tensor& InPlaceMethods::lerp_(const TensorArg& end, const Scalar& weight) const {
  flow::lerp_(TensorArg(self(), end.site()), end, weight);
  return self();
}

Tensor PointwiseMethods::addcmul(const TensorArg& a, const TensorArg& b,
                                 const AddcOptions& options) const {
  return flow::addcmul(TensorArg(self(), a.site()), a, b, options);
}

Tensor PointwiseMethods::addcdiv(const TensorArg& a, const TensorArg& b,
                                 const AddcOptions& options) const {
  return flow::addcdiv(TensorArg(self(), a.site()), a, b, options);
}

Tensor PointwiseMethods::lerp(const TensorArg& end, const TensorArg& weight) const {
  return flow::lerp(TensorArg(self(), end.site()), end, weight);
}

Tensor PointwiseMethods::lerp(const TensorArg& end, const Scalar& weight) const {
  return flow::lerp(TensorArg(self(), end.site()), end, weight);
}

}  // namespace flow
