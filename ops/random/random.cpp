#include "ops/random/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/special_op.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/random/random_op.h"
#include "ops/reduce/extrema.h"
#include "ops/sbp_rules.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_floating_like(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "a floating tensor is needed; cast it");
  ctx.add_output_like(0);
}

// A drawn value does not depend on the previous contents of the target.
void zero_grad(GradContext& g) {
  if (g.needs(0) && g.dy().defined()) g.set(0, zeros_like(g.dy()));
}

// Each rank draws its own part of the logical tensor.
void split_anywhere(SbpContext& ctx) {
  for (int64_t dim = 0; dim < ctx.input(0).shape.size(); ++dim) {
    ctx.add_positional({sbp::split(dim)}, {sbp::split(dim)});
  }
}

// The sum of a row tells whether its weights are valid.
void split_rows(SbpContext& ctx) {
  for (int64_t dim = 0; dim + 1 < ctx.input(0).shape.size(); ++dim)
    ctx.add({sbp::split(dim)}, {sbp::split(dim)});
}

// dx = dy
void pass_grad(GradContext& g) {
  g.set(0, g.dy());
}

template <class Attrs>
constexpr OpDef source(const char* name) {
  return {.name = name,
          .num_inputs = 0,
          .attrs = attrs_def<Attrs>(),
          .infer = infer_layout,
          .sbp = only_broadcast,
          .grad = not_differentiable,
          .is_random = true};
}

constexpr OpDef fill(const char* name) {
  return {.name = name,
          .attrs = attrs_def<DrawInPlaceAttrs>(),
          .infer = infer_floating_like,
          .sbp = split_anywhere,
          .grad = zero_grad,
          .allows_in_place = true,
          .is_random = true};
}

}  // namespace

const OpDef kUniform = source<DrawAttrs>("uniform");
const OpDef kNormal = source<DrawAttrs>("normal");
const OpDef kRandint = source<RandintAttrs>("randint");
const OpDef kRandperm = source<LayoutAttrs>("randperm");
const OpDef kUniformFill = fill("uniform_fill");
const OpDef kNormalFill = fill("normal_fill");
const OpDef kBernoulli{.name = "bernoulli",
                       .infer = infer_floating_like,
                       .sbp = split_anywhere,  // partial values are not probabilities
                       .grad = not_differentiable,
                       .is_random = true};

const OpDef kCheckedSpreads{.name = "checked_spreads",
                            .infer = infer_floating_like,
                            .sbp = unary_sbp<kMinToMin>,
                            .grad = pass_grad};
const OpDef kCheckedWeights{
    .name = "checked_weights", .infer = infer_floating_like, .sbp = split_rows, .grad = pass_grad};

void register_random(OpTable& table) {
  for (const OpDef* op : {&kUniform, &kNormal, &kRandint, &kRandperm, &kUniformFill, &kNormalFill,
                          &kBernoulli, &kCheckedSpreads, &kCheckedWeights}) {
    table.add(*op);
  }
}

}  // namespace ops

namespace {

using ops::LayoutAttrs;

LayoutAttrs resolve_random(const Shape& shape, DType dtype, const TensorOptions& options,
                           bool wants_floating, const char* op) {
  const LayoutAttrs layout = ops::resolve_layout(shape, dtype, options, op);
  if (wants_floating && !is_floating(layout.dtype)) {
    throw InvalidArgument(str("[", op, "] draws floating numbers; got dtype ", layout.dtype,
                              "; use randint for integers"));
  }
  if (layout.sbp.has_partial()) {
    throw InvalidArgument(str("[", op, "] a random tensor cannot be made as ", layout.sbp,
                              "; make it split or broadcast, then use to_global"));
  }
  return layout;
}

Tensor draw(const OpDef& op, double a, double b, const Shape& shape, const TensorOptions& options,
            const char* name, Site site) {
  const LayoutAttrs layout = resolve_random(shape, default_dtype(), options, true, name);
  return ops::with_grad(dispatch(op, {}, ops::DrawAttrs{layout, a, b}, site), options, name);
}

TensorOptions like(const Tensor& x, const TensorOptions& options) {
  TensorOptions merged = options_like(x);
  if (options.dtype) merged.dtype = options.dtype;
  merged.requires_grad = options.requires_grad;
  return merged;
}

void check_std(double std, const char* op, Site site) {
  if (!(std >= 0)) {
    throw InvalidArgument(str("[", op, "] std must not be negative; got ", std), site);
  }
}

void check_drawn(const char* op, const Tensor& x, Site site) {
  if (is_floating(x.dtype())) return;
  throw InvalidArgument(str("[", op, "] needs a floating dtype; received ", x.dtype()), site);
}

// The dtype of draws whose formula spreads small differences of them, such as a logarithm. 16 bits
// have too few numbers between 0 and 1 for that.
DType spread_dtype(const Tensor& x) {
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : default_dtype();
  return is_half(dtype) ? DType::kFloat32 : dtype;
}

constexpr double kLargest = std::numeric_limits<double>::max();

// Throws InvalidArgument if an element is not in [0, high]. A trace has no values to look at.
void check_range(const char* op, const char* rule, const Tensor& x, double high, Site site) {
  if (x.numel() == 0 || thread_state().trace != nullptr) return;
  const auto least = min({x, site}).item<double>(site);
  const auto largest = max({x, site}).item<double>(site);
  if (least >= 0 && largest <= high) return;
  throw InvalidArgument(str("[", op, "] ", rule, "; received ", least, " to ", largest), site);
}

Tensor checked_std(const Tensor& std, Site site) {
  return ops::checked(std, ops::kCheckedSpreads, site, [&] {
    check_std(min({std, site}).item<double>(site), "normal", site);
  });
}

}  // namespace

Tensor rand(const Shape& shape, const TensorOptions& options, Site site) {
  return ops::located(
      site, [&]() -> Tensor { return draw(ops::kUniform, 0, 1, shape, options, "rand", site); });
}

Tensor randn(const Shape& shape, const TensorOptions& options, Site site) {
  return ops::located(
      site, [&]() -> Tensor { return draw(ops::kNormal, 0, 1, shape, options, "randn", site); });
}

Tensor normal(double mean, double std, const Shape& shape, const TensorOptions& options,
              Site site) {
  return ops::located(site, [&]() -> Tensor {
    check_std(std, "normal", site);
    return draw(ops::kNormal, mean, std, shape, options, "normal", site);
  });
}

Tensor normal(const TensorArg& mean, const TensorArg& std) {
  return ops::named("normal", mean.site(), [&]() -> Tensor {
    const Shape shape = broadcast_shapes(mean->shape(), std->shape(), "normal");
    const TensorArg like = mean->shape() == shape ? mean : std;
    const Tensor wide = expand(like, shape);
    const Tensor spreads = checked_std(std.tensor(), mean.site());
    const Tensor draws = randn_like({wide, mean.site()});
    return add({mul({draws, mean.site()}, {spreads, std.site()}), mean.site()}, mean).detach();
  });
}

Tensor normal(const TensorArg& mean, double std) {
  return ops::named("normal", mean.site(), [&]() -> Tensor {
    check_std(std, "normal", mean.site());
    return add({mul({randn_like(mean), mean.site()}, std), mean.site()}, mean).detach();
  });
}

Tensor normal(double mean, const TensorArg& std) {
  return ops::named("normal", std.site(), [&]() -> Tensor {
    const Tensor spreads = checked_std(std.tensor(), std.site());
    const Tensor draws = randn_like({spreads, std.site()});
    return add({mul({draws, std.site()}, {spreads, std.site()}), std.site()}, mean).detach();
  });
}

namespace {

// Throws InvalidArgument if `dtype` does not hold a number that may be drawn: bool holds 0 and 1,
// and -1 is not drawn as the 255 that it stands for when it fills a tensor of uint8.
void check_held(DType dtype, int64_t number, const char* op, Site site) {
  ops::check_fill_value(dtype, number, op, site);
  if (dtype == DType::kBool ? number == 0 || number == 1 : ops::holds_number(dtype, number)) return;
  throw InvalidArgument(
      str("[", op, "] ", number, " does not fit into ", dtype, "; take another dtype"), site);
}

}  // namespace

Tensor randint(int64_t low, int64_t high, const Shape& shape, const TensorOptions& options,
               Site site) {
  return ops::located(site, [&]() -> Tensor {
    if (low >= high) {
      throw InvalidArgument(str("[randint] needs low < high; got ", low, " and ", high), site);
    }
    const LayoutAttrs layout = resolve_random(shape, DType::kInt64, options, false, "randint");
    check_held(layout.dtype, low, "randint", site);
    check_held(layout.dtype, high - 1, "randint", site);
    return ops::with_grad(dispatch(ops::kRandint, {}, ops::RandintAttrs{layout, low, high}, site),
                          options, "randint");
  });
}

Tensor randint(int64_t high, const Shape& shape, const TensorOptions& options, Site site) {
  return randint(0, high, shape, options, site);
}

Tensor randperm(int64_t n, const TensorOptions& options, Site site) {
  return ops::located(site, [&]() -> Tensor {
    if (n < 0) throw InvalidArgument(str("[randperm] n must not be negative; got ", n), site);
    const LayoutAttrs layout = resolve_random({n}, DType::kInt64, options, false, "randperm");
    if (n > 0) check_held(layout.dtype, n - 1, "randperm", site);
    return dispatch(ops::kRandperm, {}, layout, site);
  });
}

Tensor rand_like(const TensorArg& x, const TensorOptions& options) {
  return ops::named("rand_like", x.site(),
                    [&]() -> Tensor { return rand(x->shape(), like(x, options), x.site()); });
}

Tensor randn_like(const TensorArg& x, const TensorOptions& options) {
  return ops::named("randn_like", x.site(),
                    [&]() -> Tensor { return randn(x->shape(), like(x, options), x.site()); });
}

Tensor randint_like(const TensorArg& x, int64_t low, int64_t high, const TensorOptions& options) {
  return ops::named("randint_like", x.site(), [&]() -> Tensor {
    return randint(low, high, x->shape(), like(x, options), x.site());
  });
}

Tensor randint_like(const TensorArg& x, int64_t high, const TensorOptions& options) {
  return ops::named("randint_like", x.site(),
                    [&]() -> Tensor { return randint_like(x, 0, high, options); });
}

Tensor bernoulli(const TensorArg& p) {
  return dispatch(ops::kBernoulli, {&p.tensor()}, p.site());
}

Tensor poisson(const TensorArg& rate) {
  return ops::named("poisson", rate.site(), [&]() -> Tensor {
    const Site site = rate.site();
    check_drawn("poisson", rate, site);
    check_range("poisson", "a rate must be finite and not negative", rate->detach(), kLargest,
                site);
    const Tensor wide = cast({rate->detach(), site}, DType::kFloat64);
    const Tensor u = rand_like({wide, site});
    return cast({ops::poisson_count({wide, site}, {u, site}), site}, rate->dtype());
  });
}

Tensor binomial(const TensorArg& count, const TensorArg& prob) {
  return ops::named("binomial", count.site(), [&]() -> Tensor {
    const Site site = count.site();
    check_drawn("binomial", count, site);
    if (count->dtype() != prob->dtype()) {
      throw InvalidArgument(str("[binomial] count and prob must have one dtype; received ",
                                count->meta(), ", ", prob->meta(), "; cast one"),
                            site);
    }
    const Tensor counts = count->detach();
    check_range("binomial", "a count must be finite and not negative", counts, kLargest, site);
    check_range("binomial", "a count must be whole", frac({counts, site}), 0, site);
    check_range("binomial", "a probability must be in [0, 1]", prob->detach(), 1, site);
    const Shape shape = broadcast_shapes(count->shape(), prob->shape(), "binomial");
    const Tensor events = cast({counts, site}, DType::kFloat64);
    const Tensor chances = cast({prob->detach(), site}, DType::kFloat64);
    const Tensor wide = expand({count->shape() == shape ? events : chances, site}, shape);
    const Tensor u = rand_like({wide, site});
    const Tensor drawn = ops::binomial_count({events, site}, {chances, site}, {u, site});
    return cast({drawn, site}, count->dtype());
  });
}

const Tensor& InPlaceMethods::uniform_(double from, double to, Site site) const {
  const double widest = self().dtype() == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                          : std::numeric_limits<float>::max();
  if (!(from <= to && to - from <= widest)) {
    throw InvalidArgument(str("[uniform_] needs from <= to, not further apart than ", widest,
                              "; got ", from, " and ", to),
                          site);
  }
  const ops::DrawInPlaceAttrs attrs{from, to};
  ops::named_in_place(ops::kUniformFill, site,
                      [&] { dispatch_in_place(ops::kUniformFill, {&self()}, &attrs, site); });
  return self();
}

const Tensor& InPlaceMethods::normal_(double mean, double std, Site site) const {
  check_std(std, "normal_", site);
  const ops::DrawInPlaceAttrs attrs{mean, std};
  ops::named_in_place(ops::kNormalFill, site,
                      [&] { dispatch_in_place(ops::kNormalFill, {&self()}, &attrs, site); });
  return self();
}

Tensor PointwiseMethods::bernoulli(Site site) const {
  return flow::bernoulli({self(), site});
}

const Tensor& InPlaceMethods::bernoulli_(double p, Site site) const {
  if (!(p >= 0 && p <= 1)) {
    throw InvalidArgument(str("[bernoulli_] needs p in [0, 1]; got ", p), site);
  }
  const DType drawn = is_floating(self().dtype()) ? self().dtype() : default_dtype();
  const Tensor chances = full_like({self(), site}, p, {.dtype = drawn});
  return copy_({flow::bernoulli({chances, site}), site});
}

const Tensor& InPlaceMethods::exponential_(double lambd, Site site) const {
  if (!(lambd > 0)) {
    throw InvalidArgument(str("[exponential_] needs lambd > 0; got ", lambd), site);
  }
  check_drawn("exponential_", self(), site);
  const Tensor u = rand_like({self(), site}, {.dtype = spread_dtype(self())});
  return copy_({-log1p(-u) / lambd, site});
}

const Tensor& InPlaceMethods::log_normal_(double mean, double std, Site site) const {
  check_std(std, "log_normal_", site);
  check_drawn("log_normal_", self(), site);
  const Tensor draws = randn_like({self(), site}, {.dtype = spread_dtype(self())});
  return copy_({exp(draws * std + mean), site});
}

const Tensor& InPlaceMethods::cauchy_(double median, double sigma, Site site) const {
  if (!(sigma > 0)) throw InvalidArgument(str("[cauchy_] needs sigma > 0; got ", sigma), site);
  check_drawn("cauchy_", self(), site);
  const Tensor u = rand_like({self(), site}, {.dtype = spread_dtype(self())});
  const Tensor angle = (u - 0.5) * std::numbers::pi;
  return copy_({tan(angle) * sigma + median, site});
}

const Tensor& InPlaceMethods::geometric_(double p, Site site) const {
  if (!(p > 0 && p < 1)) {
    throw InvalidArgument(str("[geometric_] needs p in (0, 1); got ", p), site);
  }
  const Tensor u = rand_like({self(), site}, {.dtype = spread_dtype(self())});
  return copy_({floor(log1p(-u) / std::log1p(-p)) + 1, site});
}

}  // namespace flow
