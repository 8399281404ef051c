#include "nn/layers/norm.h"

#include "ops/creation.h"
#include "ops/norm.h"

namespace flow::nn {

LayerNorm::LayerNorm(const Shape& normalized_shape, LayerNormOptions options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  const bool affine = options.elementwise_affine;
  weight = register_parameter("weight", affine ? ones(normalized_shape) : Tensor());
  bias = register_parameter("bias", affine ? zeros(normalized_shape) : Tensor());
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, {.weight = weight, .bias = bias, .eps = eps_});
}

}  // namespace flow::nn
