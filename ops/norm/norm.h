// Normalisation over trailing dims or over groups of channels.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct NormalizationOptions {
  Tensor weight = {};
  Tensor bias = {};
  double eps = 1e-5;
};

// Layer normalisation (Ba et al. 2016): y = (x - mean) / sqrt(var + eps) * weight + bias, with mean
// and biased variance over the trailing dims, whose sizes are `normalized_shape`. weight and bias
// have that shape. 16-bit floats are computed in float32.
//
//   Tensor y = layer_norm(x, {width}, {.weight = w, .bias = b});
Tensor layer_norm(const TensorArg& x, const Shape& normalized_shape,
                  const NormalizationOptions& options = {});

struct RmsNormOptions {
  Tensor weight = {};
  std::optional<double> eps = std::nullopt;  // unset: that of x, float32's for 16 bits
};

// RMS normalisation (Zhang and Sennrich 2019): y = x / sqrt(mean(x^2) + eps) * weight over the
// trailing dims.
Tensor rms_norm(const TensorArg& x, const Shape& normalized_shape,
                const RmsNormOptions& options = {});

// Group normalisation (Wu and He 2018) of x (N, C, ...): mean and biased variance are taken over
// each of `num_groups` groups of channels of each sample. weight and bias: (C).
Tensor group_norm(const TensorArg& x, int64_t num_groups, const NormalizationOptions& options = {});

}  // namespace flow
