// Linear: y = x Wᵀ + b.
#pragma once

#include "nn/module.h"

namespace flow::nn {

struct LinearOptions {
  bool bias = true;
};

// x: (…, in_features) → (…, out_features). weight: (out, in), bias: (out); both start as
// U(-1/√in, 1/√in), as in PyTorch.
class Linear : public Module<Linear> {
 public:
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {});
  Tensor forward(const Tensor& x);

  Tensor weight, bias;
};

}  // namespace flow::nn
