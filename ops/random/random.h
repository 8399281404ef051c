// Random tensors. Values depend only on the seed (manual_seed), the number of the draw in the
// program and the logical position of the element, so every layout over any number of ranks gives
// the same values (core/generator.h). Local draws of different ranks differ.
#pragma once

#include "core/tensor.h"

namespace flow {

// Uniform numbers in [0, 1). The dtype is float32 unless options give another floating dtype.
Tensor rand(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// Normally distributed numbers with mean 0 and standard deviation 1, drawn in pairs (Box and Muller
// 1958).
Tensor randn(const Shape& shape, const TensorOptions& options = {}, Site site = Site::here());
// Normally distributed numbers with the given mean and standard deviation.
Tensor normal(double mean, double std, const Shape& shape, const TensorOptions& options = {},
              Site site = Site::here());
// The same with a mean and a standard deviation for each element. The shapes broadcast. There is no
// gradient. Throws InvalidArgument, except in a graph, if a standard deviation is negative or NaN.
Tensor normal(const TensorArg& mean, const TensorArg& std);
Tensor normal(const TensorArg& mean, double std = 1);
Tensor normal(double mean, const TensorArg& std);
// Uniformly distributed integers in [low, high), with probabilities equal to within 2⁻³². The dtype
// is int64 unless options give another.
Tensor randint(int64_t low, int64_t high, const Shape& shape, const TensorOptions& options = {},
               Site site = Site::here());
Tensor randint(int64_t high, const Shape& shape, const TensorOptions& options = {},
               Site site = Site::here());
// A random permutation of 0 … n - 1 as int64: the sorting order of n 64-bit draws.
Tensor randperm(int64_t n, const TensorOptions& options = {}, Site site = Site::here());
// The same as rand and randn with the shape, dtype and layout of x.
Tensor rand_like(const TensorArg& x, const TensorOptions& options = {});
Tensor randn_like(const TensorArg& x, const TensorOptions& options = {});
Tensor randint_like(const TensorArg& x, int64_t low, int64_t high,
                    const TensorOptions& options = {});
Tensor randint_like(const TensorArg& x, int64_t high, const TensorOptions& options = {});
// Returns 1 with the probability that the element of p gives (0 to 1), else 0, in the dtype of p.
// There is no gradient.
Tensor bernoulli(const TensorArg& p);
// Poisson-distributed numbers with the mean that each element of `rate` gives, in its dtype. A draw
// takes time proportional to the square root of its rate. There is no gradient. Throws
// InvalidArgument if a rate is negative or not finite; in a graph such an element becomes NaN.
Tensor poisson(const TensorArg& rate);
// How many of `count` events happen that have the probability `prob` each. The shapes broadcast;
// both have one floating dtype, which is that of the result. A draw takes time proportional to its
// standard deviation. There is no gradient. Throws InvalidArgument if a count is negative or not
// whole or a probability is outside of [0, 1]; in a graph such an element becomes NaN.
Tensor binomial(const TensorArg& count, const TensorArg& prob);

}  // namespace flow
