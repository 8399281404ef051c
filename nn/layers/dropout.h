// Dropout (Srivastava et al. 2014).
#pragma once

#include "nn/module.h"

namespace flow::nn {

struct DropoutLayerOptions {
  double p = 0.5;  // probability of an element becoming 0
};

// Scales what is kept by 1 / (1 - p) in training; the identity in evaluation.
class Dropout : public Module<Dropout> {
 public:
  // p in [0, 1], else InvalidArgument.
  explicit Dropout(DropoutLayerOptions options = {});

  explicit Dropout(double p) : Dropout(DropoutLayerOptions{.p = p}) {}

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

}  // namespace flow::nn
