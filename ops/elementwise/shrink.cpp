#include "ops/elementwise/shrink.h"

#include <cmath>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/named_errors.h"
#include "ops/norm/softmax.h"
#include "ops/promotion.h"
#include "ops/random/dropout.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"

namespace flow {

namespace {

void check_floating(const char* op, const TensorArg& x) {
  if (is_floating(x->dtype())) return;
  throw InvalidArgument(
      str("[", op, "] needs a floating dtype; received ", x->meta(), "; cast first"), x.site());
}

void check_probability(const char* op, double p, Site site) {
  if (p >= 0 && p <= 1) return;
  throw InvalidArgument(str("[", op, "] p is ", p, "; give a number from 0 to 1"), site);
}

// Ones with x's first two dims and size 1 in the others, in a layout that follows x's.
Tensor of_channels(const TensorArg& x, const char* op) {
  if (x->dim() < 2) {
    throw InvalidArgument(
        str("[", op, "] drops channels, dim 1, and needs a batch dim before it; received ",
            x->meta(), "; unsqueeze it"),
        x.site());
  }
  Shape shape = x->shape();
  for (int64_t i = 2; i < shape.size(); ++i)
    shape[i] = 1;
  const TensorOptions layout = ops::whole_like(x);
  return ones(shape, layout, x.site());
}

// The value of dropped elements, selu's lowest one, and the scale that keeps the variance.
Tensor drop_alpha(const char* op, const TensorArg& x, const Tensor& ones_of_noise,
                  const AlphaDropoutOptions& options) {
  const Site site = x.site();
  constexpr double kLowest = -1.7580993408473766;
  const double p = options.p;
  if (p == 1) return mul(x, 0);
  const double scale = 1 / std::sqrt((kLowest * kLowest * p + 1) * (1 - p));
  check_floating(op, x);
  const Tensor keeps = bernoulli({mul({ones_of_noise, site}, 1 - p), site});
  const Tensor dropped = mul({1 - TensorArg(keeps, site), site}, kLowest * scale);
  const Tensor kept = mul({mul(x, {keeps, site}), site}, scale);
  return sub({add({kept, site}, dropped), site}, kLowest * scale * p);
}

Tensor drop_features(const char* op, const TensorArg& x, const FeatureDropoutOptions& options) {
  return ops::named(op, x.site(), [&]() -> Tensor {
    check_probability(op, options.p, x.site());
    if (!options.training || options.p == 0) return x;
    const Tensor noise = dropout({of_channels(x, op), x.site()}, {.p = options.p});
    return mul(x, {noise, x.site()});
  });
}

// The same for x with `dims` dims, or one sample without the batch dim.
Tensor drop_channels(const char* op, const TensorArg& x, int64_t dims,
                     const FeatureDropoutOptions& options) {
  if (x->dim() != dims - 1) return drop_features(op, x, options);
  const Tensor batch = x->unsqueeze(0, x.site());
  return drop_features(op, {batch, x.site()}, options).squeeze(0, x.site());
}

}  // namespace

Tensor hardshrink(const TensorArg& x, const ShrinkOptions& options) {
  return ops::named("hardshrink", x.site(), [&]() -> Tensor {
    check_floating("hardshrink", x);
    const Site site = x.site();
    return where({le({abs(x), site}, options.lambd), site}, 0.0, x);
  });
}

Tensor softshrink(const TensorArg& x, const ShrinkOptions& options) {
  return ops::named("softshrink", x.site(), [&]() -> Tensor {
    check_floating("softshrink", x);
    const Site site = x.site();
    if (!(options.lambd >= 0)) {
      throw InvalidArgument(str("[softshrink] lambd is ", options.lambd, "; give 0 or more"), site);
    }
    const Tensor moved = sub(x, mul({sign(x), site}, options.lambd));
    return where({le({abs(x), site}, options.lambd), site}, 0.0, {moved, site});
  });
}

Tensor tanhshrink(const TensorArg& x) {
  return ops::named("tanhshrink", x.site(), [&] { return sub(x, tanh(x)); });
}

Tensor threshold(const TensorArg& x, double threshold, double value) {
  return ops::named("threshold", x.site(), [&] {
    return masked_fill(x, {le(x, threshold), x.site()}, value);
  });
}

Tensor softmin(const TensorArg& x, int64_t dim) {
  return ops::named("softmin", x.site(), [&] { return softmax({neg(x), x.site()}, dim); });
}

Tensor rrelu(const TensorArg& x, const RReluOptions& options) {
  return ops::named("rrelu", x.site(), [&]() -> Tensor {
    check_floating("rrelu", x);
    const Site site = x.site();
    const double range = options.upper - options.lower;
    if (!(range >= 0 && std::isfinite(range))) {
      throw InvalidArgument(
          str("[rrelu] lower and upper must be finite, and lower not above upper; received ",
              options.lower, " and ", options.upper),
          site);
    }
    if (!options.training) return leaky_relu(x, {.negative_slope = options.lower + range / 2});
    const Tensor drawn = mul({rand_like(x), site}, range);
    const Tensor slopes = add({drawn, site}, options.lower);
    return where({gt(x, 0), site}, x, {mul(x, {slopes, site}), site});
  });
}

Tensor gumbel_softmax(const TensorArg& logits, const GumbelSoftmaxOptions& options) {
  return ops::named("gumbel_softmax", logits.site(), [&]() -> Tensor {
    check_floating("gumbel_softmax", logits);
    const Site site = logits.site();
    const Tensor wide = ops::widened(logits);  // the noise of 16-bit draws has large steps
    // -log of an exponential draw. Draws are from [0, 1); a 0 is replaced by the least normal
    // number.
    const Tensor draws = clamp({rand_like({wide, site}), site}, {.min = 1.17549435e-38});
    const Tensor exponential = neg({log({draws, site}), site});
    const Tensor noise = neg({log({exponential, site}), site});
    const Tensor noisy = div({add({wide, site}, {noise, site}), site}, options.tau);
    const Tensor soft = softmax({noisy, site}, options.dim);
    if (!options.hard) return cast({soft, site}, logits->dtype());
    const Tensor best = argmax({soft, site}, options.dim, {.keepdim = true});
    const Tensor fixed = soft.detach();
    const Tensor one_hot = scatter({zeros_like({fixed, site}), site}, options.dim, {best, site}, 1);
    const Tensor straight_through = add({sub({one_hot, site}, fixed), site}, soft);
    return cast({straight_through, site}, logits->dtype());
  });
}

Tensor alpha_dropout(const TensorArg& x, const AlphaDropoutOptions& options) {
  return ops::named("alpha_dropout", x.site(), [&]() -> Tensor {
    check_probability("alpha_dropout", options.p, x.site());
    if (!options.training || options.p == 0) return x;
    return drop_alpha("alpha_dropout", x, ones_like(x->detach()), options);
  });
}

Tensor feature_alpha_dropout(const TensorArg& x, const AlphaDropoutOptions& options) {
  return ops::named("feature_alpha_dropout", x.site(), [&]() -> Tensor {
    check_probability("feature_alpha_dropout", options.p, x.site());
    if (!options.training || options.p == 0) return x;
    return drop_alpha("feature_alpha_dropout", x, of_channels(x, "feature_alpha_dropout"), options);
  });
}

Tensor dropout1d(const TensorArg& x, const FeatureDropoutOptions& options) {
  return drop_channels("dropout1d", x, 3, options);
}

Tensor dropout2d(const TensorArg& x, const FeatureDropoutOptions& options) {
  return drop_features("dropout2d", x, options);
}

Tensor dropout3d(const TensorArg& x, const FeatureDropoutOptions& options) {
  return drop_channels("dropout3d", x, 5, options);
}

Tensor PointwiseMethods::hardshrink(const ShrinkOptions& options, Site site) const {
  return flow::hardshrink(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::tanhshrink(Site site) const {
  return flow::tanhshrink(TensorArg(self(), site));
}

Tensor PointwiseMethods::rrelu(Site site) const {
  return flow::rrelu(TensorArg(self(), site));
}

Tensor PointwiseMethods::rrelu(const RReluOptions& options, Site site) const {
  return flow::rrelu(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::softshrink(const ShrinkOptions& options, Site site) const {
  return flow::softshrink(TensorArg(self(), site), options);
}

Tensor PointwiseMethods::threshold(double threshold, double value, Site site) const {
  return flow::threshold(TensorArg(self(), site), threshold, value);
}

Tensor PointwiseMethods::softmin(int64_t dim, Site site) const {
  return flow::softmin(TensorArg(self(), site), dim);
}

}  // namespace flow
