// Resizing and comparing as modules. The formulas are at the functions of ops/conv/interpolate.h
// and ops/linear/similarity.h.
#pragma once

#include "nn/module.h"
#include "ops/conv/interpolate.h"
#include "ops/linear/similarity.h"

namespace flow::nn {

// Resizes the spatial dims by interpolation. x: (N, C, in…) → (N, C, out…). Exactly one of size and
// scale_factor, of positive numbers, is required, else InvalidArgument.
class Upsample : public Module<Upsample> {
 public:
  explicit Upsample(InterpolateOptions options, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  InterpolateOptions options_;
};

// The cosine of the angle between a and b along options.dim; a and b broadcast to one shape.
class CosineSimilarity : public Module<CosineSimilarity> {
 public:
  explicit CosineSimilarity(const CosineOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& a, const Tensor& b);

 private:
  CosineOptions options_;
};

// The p-norm of a - b + eps over the last dim. a, b: (…, D) → (…).
class PairwiseDistance : public Module<PairwiseDistance> {
 public:
  explicit PairwiseDistance(const DistanceOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& a, const Tensor& b);

 private:
  DistanceOptions options_;
};

}  // namespace flow::nn
