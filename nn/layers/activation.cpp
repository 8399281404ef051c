#include "nn/layers/activation.h"

#include "ops/elementwise/binary.h"
#include "ops/elementwise/shrink.h"

namespace flow::nn {

Tensor Identity::forward(const Tensor& x) {
  return x;
}

Tensor Tanh::forward(const Tensor& x) {
  return tanh(x);
}

Tensor Sigmoid::forward(const Tensor& x) {
  return sigmoid(x);
}

Tensor LogSigmoid::forward(const Tensor& x) {
  return logsigmoid(x);
}

Tensor Hardsigmoid::forward(const Tensor& x) {
  return hardsigmoid(x);
}

Tensor GELU::forward(const Tensor& x) {
  return gelu(x, options_);
}

Tensor QuickGELU::forward(const Tensor& x) {
  return x * sigmoid(x * 1.702);
}

Tensor SiLU::forward(const Tensor& x) {
  return silu(x);
}

Tensor Mish::forward(const Tensor& x) {
  return mish(x);
}

Tensor Hardswish::forward(const Tensor& x) {
  return hardswish(x);
}

Tensor Softplus::forward(const Tensor& x) {
  return softplus(x, options_);
}

Tensor Softsign::forward(const Tensor& x) {
  return softsign(x);
}

Tensor Tanhshrink::forward(const Tensor& x) {
  return tanhshrink(x);
}

Tensor GLU::forward(const Tensor& x) {
  return glu(x, options_.dim);
}

}  // namespace flow::nn
