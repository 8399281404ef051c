#include "nn/layers/activation_variants.h"

#include "core/error.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/creation.h"
#include "ops/random.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace flow::nn {

namespace {
// min(max(x, low), high); at the bounds the gradient is 0, unlike clamp's.
Tensor hardtanh(const Tensor& x, double low, double high) {
  const Tensor is_inside = logical_and(gt(x, low), lt(x, high));
  return where(is_inside, x, clamp(x.detach(), {.min = low, .max = high}));
}
}  // namespace

Tensor CELU::forward(const Tensor& x) {
  const Tensor negative = clamp(x, {.max = 0.0});
  return relu(x) + expm1(negative / options_.alpha) * options_.alpha;
}

Tensor SELU::forward(const Tensor& x) {
  constexpr double kScale = 1.0507009873554804934193349852946;
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  return elu(x, {.alpha = kAlpha}) * kScale;
}

Tensor Mish::forward(const Tensor& x) {
  return x * tanh(softplus(x));
}

Tensor Hardsigmoid::forward(const Tensor& x) {
  return hardtanh(x + 3.0, 0, 6) / 6.0;
}

Tensor Hardswish::forward(const Tensor& x) {
  return x * hardtanh(x + 3.0, 0, 6) / 6.0;
}

Tensor Hardtanh::forward(const Tensor& x) {
  return hardtanh(x, options_.min_val, options_.max_val);
}

Tensor Hardshrink::forward(const Tensor& x) {
  return where(gt(abs(x), options_.lambd), x, 0.0);
}

Tensor Softshrink::forward(const Tensor& x) {
  return x - clamp(x, {.min = -options_.lambd, .max = options_.lambd});
}

Tensor Tanhshrink::forward(const Tensor& x) {
  return x - tanh(x);
}

Tensor Softsign::forward(const Tensor& x) {
  return x / (abs(x) + 1.0);
}

Tensor LogSigmoid::forward(const Tensor& x) {
  return -softplus(-x, {.threshold = 40});  // beyond, the difference is below float64's spacing
}

Tensor QuickGELU::forward(const Tensor& x) {
  return x * sigmoid(x * 1.702);
}

Tensor SquareReLU::forward(const Tensor& x) {
  return square(relu(x));
}

Tensor GLU::forward(const Tensor& x) {
  const int64_t size = x.size(options_.dim);
  if (size % 2 != 0) {
    throw InvalidArgument(
        str("[GLU] dim ", options_.dim, " must have an even size; received ", x.meta()));
  }
  return narrow(x, options_.dim, 0, size / 2) *
         sigmoid(narrow(x, options_.dim, size / 2, size / 2));
}

Tensor RReLU::forward(const Tensor& x) {
  const double range = options_.upper - options_.lower;
  if (!is_training()) return leaky_relu(x, {.negative_slope = options_.lower + range / 2});
  return where(gt(x, 0), x, x * (rand_like(x) * range + options_.lower));
}

Tensor Threshold::forward(const Tensor& x) {
  return where(gt(x, threshold_), x, value_);
}

PReLU::PReLU(PReLUOptions options)
    : weight(register_parameter("weight", full({options.num_parameters}, options.init))) {}

Tensor PReLU::forward(const Tensor& x) {
  if (weight.numel() == 1) return where(gt(x, 0), x, x * weight);
  if (x.dim() < 2 || x.size(1) != weight.numel()) {
    throw InvalidArgument(str("[PReLU] dim 1 of the input has the size of the weight, ",
                              weight.numel(), "; received ", x.meta()));
  }
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = weight.numel();
  return where(gt(x, 0), x, x * weight.reshape(Shape(shape)));
}

}  // namespace flow::nn
