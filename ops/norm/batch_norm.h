// Batch normalisation.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// Whose statistics a batch in training is normalised by.
enum class BatchStats : uint8_t {
  kLogical,  // those of the whole batch
  kLocal     // of a global tensor whose samples are split: those of each rank's part
};

struct BatchNormOptions {
  Tensor weight = {};
  Tensor bias = {};
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
  BatchStats stats = BatchStats::kLogical;
};

// y = (x - mean) / sqrt(var + eps) * weight + bias for each channel (dim 1) of x (N, C, ...).
// When training, or without running statistics, mean and biased variance are those of all other
// dims, for a global tensor those of the logical batch, or with stats = kLocal of each rank's
// samples, split along one placement axis; then running_mean and running_var (C), unless undefined,
// become (1 - momentum) old + momentum new, with the unbiased variance, and the mean over the
// ranks. Else they are the statistics.
//
//   Tensor y = batch_norm(x, mean, var, {.weight = w, .bias = b, .training = true});
Tensor batch_norm(const TensorArg& x, const TensorArg& running_mean, const TensorArg& running_var,
                  const BatchNormOptions& options = {});

// Adds one to `num_batches`, once for each batch that a layer normalised; in a graph that cuts
// batches, for each of their parts.
void count_batch_(const TensorArg& num_batches);

}  // namespace flow
