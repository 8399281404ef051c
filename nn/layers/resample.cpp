#include "nn/layers/resample.h"

namespace flow::nn {

Tensor Upsample::forward(const Tensor& x) {
  return interpolate(x, options_);
}

Tensor CosineSimilarity::forward(const Tensor& a, const Tensor& b) {
  return cosine_similarity(a, b, options_);
}

Tensor PairwiseDistance::forward(const Tensor& a, const Tensor& b) {
  return pairwise_distance(a, b, options_);
}

}  // namespace flow::nn
