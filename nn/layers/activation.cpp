#include "nn/layers/activation.h"

#include "core/error.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/shrink.h"
#include "ops/norm/softmax.h"

namespace flow::nn {

Tensor Identity::forward(const Tensor& x) {
  return x;
}

Tensor ReLU::forward(const Tensor& x) {
  return relu(x);
}

Tensor ReLU6::forward(const Tensor& x) {
  return relu6(x);
}

Tensor Tanh::forward(const Tensor& x) {
  return tanh(x);
}

Tensor Sigmoid::forward(const Tensor& x) {
  return sigmoid(x);
}

Tensor GELU::forward(const Tensor& x) {
  return gelu(x, options_);
}

Tensor SiLU::forward(const Tensor& x) {
  return silu(x);
}

Tensor LeakyReLU::forward(const Tensor& x) {
  return leaky_relu(x, options_);
}

Tensor ELU::forward(const Tensor& x) {
  return elu(x, options_);
}

Tensor Softplus::forward(const Tensor& x) {
  return softplus(x, options_);
}

Tensor Softmax::forward(const Tensor& x) {
  return softmax(x, dim_);
}

Tensor Softmin::forward(const Tensor& x) {
  return softmin(x, dim_);
}

Tensor Softmax2d::forward(const Tensor& x) {
  if (x.dim() != 3 && x.dim() != 4) {
    throw InvalidArgument(str("[Softmax2d] takes (N, C, H, W) or (C, H, W); received ", x.meta()));
  }
  return softmax(x, -3);
}

Tensor LogSoftmax::forward(const Tensor& x) {
  return log_softmax(x, dim_);
}

Tensor Flatten::forward(const Tensor& x) {
  return x.flatten(options_.start_dim, options_.end_dim);
}

}  // namespace flow::nn
