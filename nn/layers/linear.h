// Linear layers: y = x Wᵀ + b, and bilinear ones: y = x1 W x2 + b.
#pragma once

#include "nn/module.h"

namespace flow::nn {

struct LinearOptions {
  bool bias = true;
};

// x: (…, in_features) → (…, out_features). weight: (out, in), bias: (out). Both are initialised as
// U(-1/√in, 1/√in), as in PyTorch. A negative size is InvalidArgument.
class Linear : public Module<Linear> {
 public:
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {},
         Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;
};

// x1: (…, in1_features), x2: (…, in2_features) → (…, out_features). weight: (out, in1, in2), bias:
// (out). Both are initialised as U(-1/√in1, 1/√in1), as in PyTorch. A negative size and
// in1_features = 0 are InvalidArgument.
class Bilinear : public Module<Bilinear> {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
           LinearOptions options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x1, const Tensor& x2);

  Tensor weight, bias;
};

}  // namespace flow::nn
