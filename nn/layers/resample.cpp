#include "nn/layers/resample.h"

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"

namespace flow::nn {

namespace {

std::string text_of_factors(const std::vector<double>& factors) {
  if (factors.size() == 1) return internal::text_of(factors[0]);
  std::string text;
  for (const double factor : factors)
    text += (text.empty() ? "(" : ", ") + internal::text_of(factor);
  return text + ")";
}

void check_sizes(const InterpolateOptions& options, Site site) {
  if (options.size.empty() == options.scale_factor.empty()) {
    throw InvalidArgument(str("[Upsample] needs size or scale_factor; received ",
                              options.size.empty() ? "neither" : "both", "; give one"),
                          site);
  }
  for (const int64_t size : options.size)
    internal::check_positive("Upsample", {{"size", size}}, site);
  for (const double factor : options.scale_factor) {
    if (factor > 0) continue;
    throw InvalidArgument(str("[Upsample] scale_factor must be positive; received ", factor), site);
  }
}

}  // namespace

Upsample::Upsample(InterpolateOptions options, Site site) : options_(std::move(options)) {
  check_sizes(options_, site);
  const bool has_factor = !options_.scale_factor.empty();
  set_extra_repr((has_factor ? "scale_factor=" + text_of_factors(options_.scale_factor)
                             : "size=" + internal::text_of(options_.size)) +
                 ", mode=" + internal::text_of(options_.mode));
}

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
