#include "nn/layers/linear.h"

#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"
#include "ops/linear/matmul.h"
#include "ops/linear/vector_algebra.h"

namespace flow::nn {

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options, Site site) {
  const SiteScope scope(site);
  internal::check_sizes("Linear", {{"in_features", in_features}, {"out_features", out_features}},
                        site);
  const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  weight = register_parameter("weight",
                              init::uniform_(empty({out_features, in_features}), -bound, bound));
  bias = register_parameter(
      "bias", options.bias ? init::uniform_(empty({out_features}), -bound, bound) : Tensor());
  set_extra_repr(str("in_features=", in_features, ", out_features=", out_features,
                     ", bias=", internal::text_of(options.bias)));
}

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight, bias);
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
                   LinearOptions options, Site site) {
  const SiteScope scope(site);
  internal::check_positive("Bilinear", {{"in1_features", in1_features}}, site);
  internal::check_sizes("Bilinear",
                        {{"in2_features", in2_features}, {"out_features", out_features}}, site);
  const double bound = 1 / std::sqrt(static_cast<double>(in1_features));
  const Shape shape = {out_features, in1_features, in2_features};
  weight = register_parameter("weight", init::uniform_(empty(shape), -bound, bound));
  bias = register_parameter(
      "bias", options.bias ? init::uniform_(empty({out_features}), -bound, bound) : Tensor());
  set_extra_repr(str("in1_features=", in1_features, ", in2_features=", in2_features,
                     ", out_features=", out_features, ", bias=", internal::text_of(options.bias)));
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) {
  return bilinear(x1, x2, weight, bias);
}

}  // namespace flow::nn
