// Batch normalisation.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// The samples whose statistics normalise a batch in training.
enum class BatchStats : uint8_t {
  kLogical,  // the samples of the whole batch
  kLocal     // each rank's samples, if the samples of a global tensor are split
};

struct BatchNormOptions {
  Tensor weight = {};
  Tensor bias = {};
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
  BatchStats stats = BatchStats::kLogical;
};

// Batch normalisation (Ioffe and Szegedy 2015): y = (x - mean) / sqrt(var + eps) * weight + bias
// for each channel (dim 1) of x (N, C, ...). In training, or without running statistics, mean and
// biased variance are taken over all other dims: of the logical batch for a global tensor, or, with
// stats = kLocal, of each rank's samples, which are split along one placement axis. running_mean
// and running_var (C), unless undefined, then become (1 - momentum) old + momentum new, where new
// is the mean or unbiased variance, averaged over the ranks if they differ. Outside training the
// running statistics are used.
//
//   Tensor y = batch_norm(x, mean, var, {.weight = w, .bias = b, .training = true});
Tensor batch_norm(const TensorArg& x, const TensorArg& running_mean, const TensorArg& running_var,
                  const BatchNormOptions& options = {});

// Adds one to `num_batches`, once for each batch that a layer normalises. In a graph that divides
// batches into micro-batches, adds one for each of them.
void count_batch_(const TensorArg& num_batches);

}  // namespace flow
