#include "nn/layers/linear.h"

#include <cmath>

#include "nn/init.h"
#include "ops/creation.h"
#include "ops/matmul.h"

namespace flow::nn {

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options) {
  const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  weight = register_parameter("weight",
                              init::uniform_(empty({out_features, in_features}), -bound, bound));
  bias = register_parameter(
      "bias", options.bias ? init::uniform_(empty({out_features}), -bound, bound) : Tensor());
}

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight, bias);
}

}  // namespace flow::nn
