#include "nn/layers/rectifier.h"

#include "ops/creation/creation.h"

namespace flow::nn {

Tensor ReLU::forward(const Tensor& x) {
  return relu(x);
}

Tensor ReLU6::forward(const Tensor& x) {
  return relu6(x);
}

Tensor SquareReLU::forward(const Tensor& x) {
  return square(relu(x));
}

Tensor LeakyReLU::forward(const Tensor& x) {
  return leaky_relu(x, options_);
}

PReLU::PReLU(PReLUOptions options)
    : weight(register_parameter("weight", full({options.num_parameters}, options.init))) {}

Tensor PReLU::forward(const Tensor& x) {
  return prelu(x, weight);
}

Tensor RReLU::forward(const Tensor& x) {
  return rrelu(x, {.lower = options_.lower, .upper = options_.upper, .training = is_training()});
}

Tensor ELU::forward(const Tensor& x) {
  return elu(x, options_);
}

Tensor CELU::forward(const Tensor& x) {
  return celu(x, options_);
}

Tensor SELU::forward(const Tensor& x) {
  return selu(x);
}

Tensor Hardtanh::forward(const Tensor& x) {
  return hardtanh(x, options_);
}

Tensor Threshold::forward(const Tensor& x) {
  return threshold(x, threshold_, value_);
}

Tensor Hardshrink::forward(const Tensor& x) {
  return hardshrink(x, {.lambd = options_.lambd});
}

Tensor Softshrink::forward(const Tensor& x) {
  return softshrink(x, {.lambd = options_.lambd});
}

}  // namespace flow::nn
