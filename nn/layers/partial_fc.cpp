#include "nn/layers/partial_fc.h"

#include "nn/init.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/linear/matmul.h"
#include "ops/linear/similarity.h"

namespace flow::nn {

PartialFC::PartialFC(int64_t embedding_size, int64_t num_classes, PartialFcLayerOptions options,
                     Site site)
    : options_(options) {
  const SiteScope scope(site);
  internal::check_sizes("PartialFC",
                        {{"embedding_size", embedding_size},
                         {"num_classes", num_classes},
                         {"num_sample", options.num_sample},
                         {"num_parts", options.num_parts}},
                        site);
  weight =
      register_parameter("weight", init::normal_(empty({num_classes, embedding_size}), 0, 0.01));
}

PartialFcResult PartialFC::forward(const Tensor& features, const Tensor& label) {
  Tensor centres = weight;
  Tensor column = label;
  if (is_training() && options_.num_sample > 0) {
    PartialFcSample sample = distributed_partial_fc_sample(weight, label, options_.num_sample,
                                                           {.num_parts = options_.num_parts});
    centres = std::move(sample.sampled_weight);
    column = std::move(sample.mapped_label);
  }
  return {linear(normalize(features), normalize(centres)), column};
}

}  // namespace flow::nn
