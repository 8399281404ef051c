#include "nn/layers/activation.h"

#include "ops/unary.h"

namespace flow::nn {

Tensor ReLU::forward(const Tensor& x) {
  return relu(x);
}

Tensor Tanh::forward(const Tensor& x) {
  return tanh(x);
}

Tensor Sigmoid::forward(const Tensor& x) {
  return sigmoid(x);
}

Tensor GELU::forward(const Tensor& x) {
  return gelu(x, {.approximate = options_.approximate});
}

Tensor Flatten::forward(const Tensor& x) {
  return x.flatten(options_.start_dim, options_.end_dim);
}

}  // namespace flow::nn
