#include "nn/layers/activation_variants.h"

#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/creation.h"
#include "ops/random.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace flow::nn {

Tensor CELU::forward(const Tensor& x) {
  return celu(x, options_);
}

Tensor SELU::forward(const Tensor& x) {
  return selu(x);
}

Tensor Mish::forward(const Tensor& x) {
  return mish(x);
}

Tensor Hardsigmoid::forward(const Tensor& x) {
  return hardsigmoid(x);
}

Tensor Hardswish::forward(const Tensor& x) {
  return hardswish(x);
}

Tensor Hardtanh::forward(const Tensor& x) {
  return hardtanh(x, options_);
}

Tensor Hardshrink::forward(const Tensor& x) {
  return where(gt(abs(x), options_.lambd), x, 0.0);
}

Tensor Softshrink::forward(const Tensor& x) {
  return where(le(abs(x), options_.lambd), 0.0, x - sign(x) * options_.lambd);
}

Tensor Tanhshrink::forward(const Tensor& x) {
  return x - tanh(x);
}

Tensor Softsign::forward(const Tensor& x) {
  return softsign(x);
}

Tensor LogSigmoid::forward(const Tensor& x) {
  return logsigmoid(x);
}

Tensor QuickGELU::forward(const Tensor& x) {
  return x * sigmoid(x * 1.702);
}

Tensor SquareReLU::forward(const Tensor& x) {
  return square(relu(x));
}

Tensor GLU::forward(const Tensor& x) {
  return glu(x, options_.dim);
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
  return prelu(x, weight);
}

}  // namespace flow::nn
