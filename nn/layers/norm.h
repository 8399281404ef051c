// Normalisation layers.
#pragma once

#include "nn/module.h"

namespace flow::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // learn weight (starts at 1) and bias (0)
};

// Normalises over the trailing dims `normalized_shape` with the biased variance (Ba et al. 2016).
class LayerNorm : public Module<LayerNorm> {
 public:
  explicit LayerNorm(const Shape& normalized_shape, LayerNormOptions options = {});
  // x: (…, normalized_shape) → the same shape.
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  Shape normalized_shape_;
  double eps_;
};

}  // namespace flow::nn
