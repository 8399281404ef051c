#include "ops/elementwise/special.h"

#include <cmath>
#include <numbers>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/special_op.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/sbp_rules.h"

namespace flow {

namespace ops {

namespace {

void infer_unary(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "needs a floating dtype; cast first");
  ctx.add_output_like(0);
}

// dx = dy digamma(x)
void grad_lgamma(GradContext& ctx) {
  if (ctx.dy().defined()) ctx.set(0, mul(ctx.dy(), digamma(ctx.input(0))));
}

// dx = dy polygamma(n + 1, x)
void grad_polygamma(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  ctx.set(0, mul(ctx.dy(), polygamma(ctx.attrs<PolygammaAttrs>().n + 1, ctx.input(0))));
}

// dx = dy sqrt(pi) / 2 exp(y^2)
void grad_erfinv(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const double factor = 1 / (2 * std::numbers::inv_sqrtpi);
  ctx.set(0, mul(mul(ctx.dy(), factor), exp(square(ctx.output()))));
}

}  // namespace

const OpDef kLgamma = in_float32({.name = "lgamma",
                                  .infer = infer_unary,
                                  .sbp = elementwise_sbp,
                                  .grad = grad_lgamma,
                                  .saved_inputs = 1,
                                  .allows_in_place = true});
const OpDef kPolygamma = in_float32({.name = "polygamma",
                                     .attrs = attrs_def<PolygammaAttrs>(),
                                     .infer = infer_unary,
                                     .sbp = elementwise_sbp,
                                     .grad = grad_polygamma,
                                     .saved_inputs = 1,
                                     .allows_in_place = true});
// The function rises, but is NaN on both sides of its domain.
const OpDef kErfinv = in_float32({.name = "erfinv",
                                  .infer = infer_unary,
                                  .sbp = elementwise_sbp,
                                  .grad = grad_erfinv,
                                  .saved_outputs = 1,
                                  .allows_in_place = true});

void register_special(OpTable& table) {
  for (const OpDef* op : {&kLgamma, &kPolygamma, &kErfinv})
    table.add(*op);
  add_ops(table, SpecialRows());
}

Tensor frexp_exponent(const TensorArg& x) {
  return run<FrexpExponent>(x);
}

Tensor poisson_count(const TensorArg& rate, const TensorArg& u) {
  return run<PoissonCount>(rate, u);
}

Tensor binomial_count(const TensorArg& count, const TensorArg& p, const TensorArg& u) {
  return dispatch(op_of<BinomialCount>(), {&count.tensor(), &p.tensor(), &u.tensor()},
                  count.site());
}

}  // namespace ops

Tensor lgamma(const TensorArg& x) {
  const Tensor numbers = ops::as_floating(x);
  return dispatch(ops::kLgamma, {&numbers}, x.site());
}

Tensor digamma(const TensorArg& x) {
  return ops::named("digamma", x.site(), [&] { return polygamma(0, x); });
}

Tensor polygamma(int64_t n, const TensorArg& x) {
  if (n < 0) {
    throw InvalidArgument(str("[polygamma] n is ", n, "; give 0 or more"), x.site());
  }
  const Tensor numbers = ops::as_floating(x);
  return dispatch(ops::kPolygamma, {&numbers}, ops::PolygammaAttrs{n}, x.site());
}

Tensor erfinv(const TensorArg& x) {
  const Tensor numbers = ops::as_floating(x);
  return dispatch(ops::kErfinv, {&numbers}, x.site());
}

// clang-format off

Tensor i0(const TensorArg& x) { return ops::run<ops::I0>(x); }
Tensor i0e(const TensorArg& x) { return ops::run<ops::I0e>(x); }
Tensor i1(const TensorArg& x) { return ops::run<ops::I1>(x); }
Tensor i1e(const TensorArg& x) { return ops::run<ops::I1e>(x); }
Tensor modified_bessel_i0(const TensorArg& x) { return i0(x); }
Tensor modified_bessel_i1(const TensorArg& x) { return i1(x); }
Tensor modified_bessel_k0(const TensorArg& x) { return ops::run<ops::K0>(x); }
Tensor modified_bessel_k1(const TensorArg& x) { return ops::run<ops::K1>(x); }
Tensor scaled_modified_bessel_k0(const TensorArg& x) { return ops::run<ops::K0e>(x); }
Tensor scaled_modified_bessel_k1(const TensorArg& x) { return ops::run<ops::K1e>(x); }
Tensor bessel_j0(const TensorArg& x) { return ops::run<ops::J0>(x); }
Tensor bessel_j1(const TensorArg& x) { return ops::run<ops::J1>(x); }
Tensor bessel_y0(const TensorArg& x) { return ops::run<ops::Y0>(x); }
Tensor bessel_y1(const TensorArg& x) { return ops::run<ops::Y1>(x); }
Tensor spherical_bessel_j0(const TensorArg& x) { return ops::run<ops::SphericalJ0>(x); }
Tensor airy_ai(const TensorArg& x) { return ops::run<ops::AiryAi>(x); }
Tensor erfcx(const TensorArg& x) { return ops::run<ops::Erfcx>(x); }
Tensor entr(const TensorArg& x) { return ops::run<ops::Entr>(x); }
Tensor log_ndtr(const TensorArg& x) { return ops::run<ops::LogNdtr>(x); }
Tensor ndtri(const TensorArg& p) { return ops::run<ops::Ndtri>(p); }
Tensor xlog1py(const TensorArg& a, const TensorArg& b) { return ops::run<ops::Xlog1py>(a, b); }
Tensor gammainc(const TensorArg& a, const TensorArg& x) { return ops::run<ops::Gammainc>(a, x); }
Tensor gammaincc(const TensorArg& a, const TensorArg& x) { return ops::run<ops::Gammaincc>(a, x); }
Tensor igamma(const TensorArg& a, const TensorArg& x) {
  return ops::named("igamma", x.site(), [&] { return gammainc(a, x); });
}

Tensor igammac(const TensorArg& a, const TensorArg& x) {
  return ops::named("igammac", x.site(), [&] { return gammaincc(a, x); });
}
Tensor zeta(const TensorArg& s, const TensorArg& q) { return ops::run<ops::Zeta>(s, q); }
Tensor gcd(const TensorArg& a, const TensorArg& b) { return ops::run<ops::Gcd>(a, b); }
Tensor lcm(const TensorArg& a, const TensorArg& b) { return ops::run<ops::Lcm>(a, b); }

// clang-format on

Tensor zeta(const TensorArg& s, const Scalar& q) {
  return zeta(s, ops::floating_number_like(s, q));
}

Tensor zeta(const Scalar& s, const TensorArg& q) {
  return zeta({ops::floating_number_like(q, s), q.site()}, q);
}

Tensor xlog1py(const TensorArg& a, const Scalar& b) {
  return xlog1py(a, ops::floating_number_like(a, b));
}

Tensor xlog1py(const Scalar& a, const TensorArg& b) {
  return xlog1py({ops::floating_number_like(b, a), b.site()}, b);
}

Tensor float_power(const TensorArg& x, const TensorArg& exponent) {
  return ops::named("float_power", x.site(), [&] {
    const Tensor base = cast(x, DType::kFloat64);
    const Tensor power = cast(exponent, DType::kFloat64);
    return pow({base, x.site()}, {power, x.site()});
  });
}

Tensor float_power(const TensorArg& x, const Scalar& exponent) {
  return ops::named("float_power", x.site(), [&] {
    const Tensor base = cast(x, DType::kFloat64);
    return pow({base, x.site()}, exponent);
  });
}

Tensor float_power(const Scalar& x, const TensorArg& exponent) {
  return ops::named("float_power", exponent.site(), [&] {
    const Tensor power = cast(exponent, DType::kFloat64);
    return pow(x, {power, exponent.site()});
  });
}

Tensor nextafter(const TensorArg& a, const TensorArg& b) {
  const DType dtype = ops::result_dtype(a, b);
  const int64_t digits = dtype == DType::kFloat16    ? 11
                         : dtype == DType::kBFloat16 ? 8
                         : dtype == DType::kFloat32  ? 24
                                                     : 53;
  return ops::dispatch_promoted(ops::op_of<ops::Nextafter>(), a, b, ops::NextafterAttrs{digits});
}

FrexpResult frexp(const TensorArg& x) {
  return ops::named("frexp", x.site(), [&]() -> FrexpResult {
    const Tensor mantissa = ops::run<ops::FrexpMantissa>(x);
    const Tensor exponent = ops::frexp_exponent(x);
    return {mantissa, cast({exponent, x.site()}, DType::kInt32)};
  });
}

Tensor logit(const TensorArg& x, const LogitOptions& options) {
  return ops::named("logit", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    Tensor p = ops::as_floating(x);
    if (options.eps) {
      const Tensor bounded = clamp_max({p, site}, 1 - *options.eps);
      p = where({lt({p, site}, *options.eps), site}, *options.eps, {bounded, site});
    }
    return ops::run<ops::Logit>({p, site});
  });
}

Tensor copysign(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Copysign>(a, b);
}

Tensor copysign(const TensorArg& a, const Scalar& b) {
  return copysign(a, ops::floating_number_like(a, b));
}

Tensor heaviside(const TensorArg& x, const TensorArg& values) {
  return ops::named("heaviside", x.site(), [&]() -> Tensor {
    if (x->dtype() != values->dtype()) {
      throw InvalidArgument(str("[heaviside] x and values must have one dtype; received ",
                                x->meta(), ", ", values->meta(), "; cast one"),
                            x.site());
    }
    const Site site = x.site();
    return where({eq(x, 0), site}, values, {cast({gt(x, 0), site}, x->dtype()), site});
  });
}

Tensor logaddexp2(const TensorArg& a, const TensorArg& b) {
  return ops::named("logaddexp2", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    const DType dtype = ops::result_dtype(a, b);
    if (!is_floating(dtype)) {
      throw InvalidArgument(str("[logaddexp2] needs a floating dtype; received ", a->meta(),
                                " and ", b->meta(), "; cast one of them"),
                            site);
    }
    const Tensor scaled = mul({cast(a, dtype), site}, std::numbers::ln2);
    const Tensor other = mul({cast(b, dtype), site}, std::numbers::ln2);
    return mul({logaddexp({scaled, site}, other), site}, std::numbers::log2e);
  });
}

Tensor deg2rad(const TensorArg& x) {
  return ops::named("deg2rad", x.site(), [&] { return mul(x, std::numbers::pi / 180); });
}

Tensor rad2deg(const TensorArg& x) {
  return ops::named("rad2deg", x.site(), [&] { return mul(x, 180 / std::numbers::pi); });
}

Tensor PointwiseMethods::gcd(const TensorArg& other) const {
  return flow::gcd(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::lcm(const TensorArg& other) const {
  return flow::lcm(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::nextafter(const TensorArg& other) const {
  return flow::nextafter(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::igamma(const TensorArg& x) const {
  return flow::igamma(TensorArg(self(), x.site()), x);
}

Tensor PointwiseMethods::igammac(const TensorArg& x) const {
  return flow::igammac(TensorArg(self(), x.site()), x);
}

Tensor PointwiseMethods::float_power(const TensorArg& exponent) const {
  return flow::float_power(TensorArg(self(), exponent.site()), exponent);
}

Tensor PointwiseMethods::float_power(const Scalar& exponent, Site site) const {
  return flow::float_power(TensorArg(self(), site), exponent);
}

FrexpResult PointwiseMethods::frexp(Site site) const {
  return flow::frexp(TensorArg(self(), site));
}

Tensor PointwiseMethods::mvlgamma(int64_t p, Site site) const {
  return flow::mvlgamma(TensorArg(self(), site), p);
}

Tensor PointwiseMethods::i0(Site site) const {
  return flow::i0(TensorArg(self(), site));
}

Tensor PointwiseMethods::erfinv(Site site) const {
  return flow::erfinv(TensorArg(self(), site));
}

Tensor PointwiseMethods::lgamma(Site site) const {
  return flow::lgamma(TensorArg(self(), site));
}

Tensor PointwiseMethods::digamma(Site site) const {
  return flow::digamma(TensorArg(self(), site));
}

Tensor PointwiseMethods::logaddexp2(const TensorArg& other) const {
  return flow::logaddexp2(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::copysign(const TensorArg& other) const {
  return flow::copysign(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::copysign(const Scalar& other, Site site) const {
  return flow::copysign(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::heaviside(const TensorArg& values) const {
  return flow::heaviside(TensorArg(self(), values.site()), values);
}

Tensor PointwiseMethods::deg2rad(Site site) const {
  return flow::deg2rad(TensorArg(self(), site));
}

Tensor PointwiseMethods::rad2deg(Site site) const {
  return flow::rad2deg(TensorArg(self(), site));
}

Tensor PointwiseMethods::logit(const LogitOptions& options, Site site) const {
  return flow::logit(TensorArg(self(), site), options);
}

Tensor ldexp(const TensorArg& x, const TensorArg& exponent) {
  return ops::named("ldexp", x.site(), [&]() -> Tensor {
    const Tensor power = exp2(exponent);
    const Tensor y = mul(x, {power, x.site()});
    // An integer exponent does not decide the dtype.
    const bool keeps = is_floating(x->dtype()) && !is_floating(exponent->dtype());
    return keeps ? cast({y, x.site()}, x->dtype()) : y;
  });
}

Tensor signbit(const TensorArg& x) {
  return ops::named("signbit", x.site(), [&]() -> Tensor {
    if (!is_floating(x->dtype())) return lt(x, 0);
    const Tensor one = copysign({ones_like(x), x.site()}, x);
    return lt({one, x.site()}, 0);
  });
}

Tensor mvlgamma(const TensorArg& x, int64_t p) {
  return ops::named("mvlgamma", x.site(), [&]() -> Tensor {
    if (p < 1) {
      throw InvalidArgument(str("[mvlgamma] needs p > 0; received ", p), x.site());
    }
    Tensor total = lgamma(x);
    for (int64_t j = 1; j < p; ++j) {
      const Tensor shifted = sub(x, static_cast<double>(j) / 2);
      total = add({total, x.site()}, lgamma({shifted, x.site()}));
    }
    const double count = static_cast<double>(p * (p - 1)) / 4;
    return add({total, x.site()}, count * std::log(std::numbers::pi));
  });
}

Tensor multigammaln(const TensorArg& x, int64_t p) {
  return mvlgamma(x, p);
}

}  // namespace flow
