// Dropout layers (Srivastava et al. 2014). In training they drop elements or channels at random; in
// evaluation they return x. A p outside [0, 1] is InvalidArgument.
#pragma once

#include "nn/module.h"

namespace flow::nn {

struct DropoutLayerOptions {
  double p = 0.5;  // probability that an element is set to 0
};

// Drops single elements and scales the others by 1 / (1 - p). x: any shape.
class Dropout : public Module<Dropout> {
 public:
  // Throws InvalidArgument unless p is in [0, 1].
  explicit Dropout(DropoutLayerOptions options = {}, Site site = Site::here());

  explicit Dropout(double p, Site site = Site::here())
      : Dropout(DropoutLayerOptions{.p = p}, site) {}

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// Drops whole channels (dim 1) of (N, C) or (N, C, L) and scales the others by 1 / (1 - p).
class Dropout1d : public Module<Dropout1d> {
 public:
  explicit Dropout1d(double p = 0.5, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// Drops whole channels (dim 1) of (N, C, H, W) and scales the others by 1 / (1 - p).
class Dropout2d : public Module<Dropout2d> {
 public:
  explicit Dropout2d(double p = 0.5, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// Drops whole channels (dim 1) of (N, C, D, H, W) and scales the others by 1 / (1 - p).
class Dropout3d : public Module<Dropout3d> {
 public:
  explicit Dropout3d(double p = 0.5, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// Dropout for networks of SELU layers: keeps mean 0 and variance 1 of the activations (Klambauer et
// al. 2017).
class AlphaDropout : public Module<AlphaDropout> {
 public:
  explicit AlphaDropout(double p = 0.5, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

// AlphaDropout of whole channels (dim 1).
class FeatureAlphaDropout : public Module<FeatureAlphaDropout> {
 public:
  explicit FeatureAlphaDropout(double p = 0.5, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  double p_;
};

}  // namespace flow::nn
