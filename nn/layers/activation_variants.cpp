#include "nn/layers/activation_variants.h"

#include "ops/creation/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/shrink.h"
#include "ops/elementwise/unary.h"

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
  return hardshrink(x, {.lambd = options_.lambd});
}

Tensor Softshrink::forward(const Tensor& x) {
  return softshrink(x, {.lambd = options_.lambd});
}

Tensor Tanhshrink::forward(const Tensor& x) {
  return tanhshrink(x);
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
  return rrelu(x, {.lower = options_.lower, .upper = options_.upper, .training = is_training()});
}

Tensor Threshold::forward(const Tensor& x) {
  return threshold(x, threshold_, value_);
}

PReLU::PReLU(PReLUOptions options)
    : weight(register_parameter("weight", full({options.num_parameters}, options.init))) {}

Tensor PReLU::forward(const Tensor& x) {
  return prelu(x, weight);
}

}  // namespace flow::nn
