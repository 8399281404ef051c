// Random tensors. Values depend on the seed (manual_seed), the ordinal of the draw in the program
// and the logical element only: any layout over any number of ranks gives the same ones
// (core/generator.h). Local draws of different ranks differ.
#pragma once

#include "core/tensor.h"

namespace flow {

// U[0, 1). float32 unless options say another floating dtype.
Tensor rand(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// N(0, 1), by pairs (Box and Muller 1958).
Tensor randn(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// N(mean, std²).
Tensor normal(double mean, double std, const Shape& shape, const TensorOptions& options = {},
              Site site = Site::here());
// With a mean and a standard deviation for each element; shapes broadcast. No gradient.
Tensor normal(const TensorArg& mean, const TensorArg& std);
Tensor normal(const TensorArg& mean, double std = 1);
Tensor normal(double mean, const TensorArg& std);
// Integers of [low, high), all equally likely (to within 2⁻³²); int64 unless options say otherwise.
Tensor randint(int64_t low, int64_t high, const Shape& shape, const TensorOptions& options = {},
               Site site = Site::here());
Tensor randint(int64_t high, const Shape& shape, const TensorOptions& options = {},
               Site site = Site::here());
// A permutation of 0 … n - 1 as int64: the order of n 64-bit draws.
Tensor randperm(int64_t n, const TensorOptions& options = {}, Site site = Site::here());
// As rand, randn of x's shape, dtype and layout.
Tensor rand_like(const TensorArg& x, const TensorOptions& options = {});
Tensor randn_like(const TensorArg& x, const TensorOptions& options = {});
Tensor randint_like(const TensorArg& x, int64_t low, int64_t high,
                    const TensorOptions& options = {});
Tensor randint_like(const TensorArg& x, int64_t high, const TensorOptions& options = {});
// 1 with the probability that p's element says, from 0 to 1, else 0; p's dtype. No gradient.
Tensor bernoulli(const TensorArg& p);

}  // namespace flow
