#include "nn/models/mlp.h"

#include "core/error.h"
#include "ops/elementwise/unary.h"

namespace flow::models {

Mlp::Mlp(const std::vector<int64_t>& sizes, std::vector<std::string> activations, Site site)
    : activations_(std::move(activations)) {
  const SiteScope scope(site);
  if (sizes.size() < 2) {
    throw InvalidArgument(
        str("[Mlp] too few sizes: one is needed for the input and one for each layer; received ",
            sizes.size(), "; give at least two"));
  }
  activations_.resize(sizes.size() - 2, "relu");
  for (const std::string& name : activations_) {
    if (name != "relu" && name != "tanh") {
      throw InvalidArgument(
          str("[Mlp] unknown activation; received '", name, "'; use relu or tanh"));
    }
  }
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    layers_.push_back(register_module(str("fc", i + 1), nn::Linear(sizes[i], sizes[i + 1])));
  }
}

Tensor Mlp::forward(const Tensor& x) {
  Tensor y = x.dim() == 2 ? x : x.flatten(1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i](y);
    if (i < activations_.size()) y = activations_[i] == "relu" ? relu(y) : tanh(y);
  }
  return y;
}

}  // namespace flow::models
