#include "nn/layers/dropout.h"

#include "core/error.h"
#include "nn/layers/option_text.h"
#include "ops/elementwise/shrink.h"
#include "ops/random/dropout.h"

namespace flow::nn {

namespace {

double checked(const char* layer, double p, Site site) {
  if (p >= 0 && p <= 1) return p;
  throw InvalidArgument(str("[", layer, "] p must be a probability from 0 to 1; received ", p),
                        site);
}

std::string probability_text(double p) {
  return str("p=", internal::text_of(p), ", inplace=False");
}

}  // namespace

Dropout::Dropout(DropoutLayerOptions options, Site site) : p_(checked("Dropout", options.p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor Dropout::forward(const Tensor& x) {
  return dropout(x, {.p = p_, .training = is_training()});
}

Dropout1d::Dropout1d(double p, Site site) : p_(checked("Dropout1d", p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor Dropout1d::forward(const Tensor& x) {
  return dropout1d(x, {.p = p_, .training = is_training()});
}

Dropout2d::Dropout2d(double p, Site site) : p_(checked("Dropout2d", p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor Dropout2d::forward(const Tensor& x) {
  return dropout2d(x, {.p = p_, .training = is_training()});
}

Dropout3d::Dropout3d(double p, Site site) : p_(checked("Dropout3d", p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor Dropout3d::forward(const Tensor& x) {
  return dropout3d(x, {.p = p_, .training = is_training()});
}

AlphaDropout::AlphaDropout(double p, Site site) : p_(checked("AlphaDropout", p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor AlphaDropout::forward(const Tensor& x) {
  return alpha_dropout(x, {.p = p_, .training = is_training()});
}

FeatureAlphaDropout::FeatureAlphaDropout(double p, Site site)
    : p_(checked("FeatureAlphaDropout", p, site)) {
  set_extra_repr(probability_text(p_));
}

Tensor FeatureAlphaDropout::forward(const Tensor& x) {
  return feature_alpha_dropout(x, {.p = p_, .training = is_training()});
}

}  // namespace flow::nn
