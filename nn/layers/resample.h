// Resizing and comparing as modules; the formulas stand at the functions of ops/conv/interpolate.h
// and ops/linear/similarity.h.
#pragma once

#include "nn/module.h"
#include "ops/conv/interpolate.h"
#include "ops/linear/similarity.h"

namespace flow::nn {

// x: (N, C, in…) → (N, C, out…).
class Upsample : public Module<Upsample> {
 public:
  explicit Upsample(InterpolateOptions options) : options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  InterpolateOptions options_;
};

class CosineSimilarity : public Module<CosineSimilarity> {
 public:
  explicit CosineSimilarity(const CosineOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& a, const Tensor& b);

 private:
  CosineOptions options_;
};

class PairwiseDistance : public Module<PairwiseDistance> {
 public:
  explicit PairwiseDistance(const DistanceOptions& options = {}) : options_(options) {}

  Tensor forward(const Tensor& a, const Tensor& b);

 private:
  DistanceOptions options_;
};

}  // namespace flow::nn
