#include "nn/layers/feature_norm.h"

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"

namespace flow::nn {

FeatureNormState::FeatureNormState(const char* layer, int64_t num_features, Parts parts, Site site)
    : num_features_(num_features) {
  internal::check_sizes(layer, {{"num_features", num_features}}, site);
  if (parts.affine) weight = ones({num_features});
  if (parts.affine && parts.bias) bias = zeros({num_features});
  if (parts.statistics) {
    running_mean = zeros({num_features});
    running_var = ones({num_features});
    num_batches_tracked = zeros({}, {.dtype = int64});
  }
}

bool FeatureNormState::fits(int64_t num_channels) const {
  return num_channels == num_features_ || (!weight.defined() && !running_mean.defined());
}

std::string FeatureNormState::option_text(double eps, std::optional<double> momentum) const {
  using internal::text_of;
  return str(num_features_, ", eps=", text_of(eps), ", momentum=", text_of(momentum),
             ", affine=", text_of(weight.defined()), ", bias=", text_of(bias.defined()),
             ", track_running_stats=", text_of(running_mean.defined()));
}

}  // namespace flow::nn
