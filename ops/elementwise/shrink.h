// Activations with a threshold, and activations that draw random numbers. They take only floating
// dtypes.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

// x where |x| > lambd, else 0.
Tensor hardshrink(const TensorArg& x, const ShrinkOptions& options = {});
// x moved towards 0 by lambd; 0 where x would cross 0.
Tensor softshrink(const TensorArg& x, const ShrinkOptions& options = {});
// x - tanh(x).
Tensor tanhshrink(const TensorArg& x);

// `value` where x is at most `threshold`, else x; NaN stays NaN.
Tensor threshold(const TensorArg& x, double threshold, double value);

// softmax(-x, dim).
Tensor softmin(const TensorArg& x, int64_t dim);

struct RReluOptions {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
  bool training = false;
};

// x where x >= 0, else x times a slope from [lower, upper). In training each element gets a new
// random slope, otherwise all get the middle one (Xu et al. 2015).
Tensor rrelu(const TensorArg& x, const RReluOptions& options = {});

struct GumbelSoftmaxOptions {
  double tau = 1;
  bool hard = false;  // one-hot, with the gradient of the soft result
  int64_t dim = -1;
};

// Samples from the distribution with these logits, relaxed by the temperature tau (Jang et al.
// 2017).
Tensor gumbel_softmax(const TensorArg& logits, const GumbelSoftmaxOptions& options = {});

struct AlphaDropoutOptions {
  double p = 0.5;
  bool training = false;
};

// Dropout that keeps the mean 0 and the variance 1 of selu's results: dropped elements become
// selu's lowest value (Klambauer et al. 2017). feature_alpha_dropout drops whole channels, dim 1.
Tensor alpha_dropout(const TensorArg& x, const AlphaDropoutOptions& options = {});
Tensor feature_alpha_dropout(const TensorArg& x, const AlphaDropoutOptions& options = {});

struct FeatureDropoutOptions {
  double p = 0.5;
  bool training = true;
};

// Dropout of whole channels, dim 1: x is (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W).
Tensor dropout1d(const TensorArg& x, const FeatureDropoutOptions& options = {});
Tensor dropout2d(const TensorArg& x, const FeatureDropoutOptions& options = {});
Tensor dropout3d(const TensorArg& x, const FeatureDropoutOptions& options = {});

}  // namespace flow
