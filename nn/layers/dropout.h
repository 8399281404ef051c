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

// Drops whole channels, dim 1, of (N, C, L), (N, C, H, W), (N, C, D, H, W) in training.
class Dropout1d : public Module<Dropout1d> {
 public:
  explicit Dropout1d(double p = 0.5);

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

class Dropout2d : public Module<Dropout2d> {
 public:
  explicit Dropout2d(double p = 0.5);

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

class Dropout3d : public Module<Dropout3d> {
 public:
  explicit Dropout3d(double p = 0.5);

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// For networks of SELU: keeps mean 0 and variance 1 in training. FeatureAlphaDropout drops
// channels.
class AlphaDropout : public Module<AlphaDropout> {
 public:
  explicit AlphaDropout(double p = 0.5);

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

class FeatureAlphaDropout : public Module<FeatureAlphaDropout> {
 public:
  explicit FeatureAlphaDropout(double p = 0.5);

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

}  // namespace flow::nn
