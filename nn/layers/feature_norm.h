// The state of layers that normalise features and may keep running statistics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/module.h"

namespace flow::nn {

// A tensor that the options leave out is undefined. weight and running_var are initialised to 1,
// the others to 0. num_batches_tracked is an int64 scalar, the others have shape (num_features).
class FeatureNormState {
 public:
  Tensor weight, bias;
  Tensor running_mean, running_var, num_batches_tracked;

 protected:
  struct Parts {
    bool affine;  // weight and bias
    bool bias;    // false: weight only
    bool statistics;
  };

  FeatureNormState(const char* layer, int64_t num_features, Parts parts, Site site);
  // Any size fits a layer without parameters and statistics.
  bool fits(int64_t num_channels) const;
  // See ModuleBase::set_extra_repr.
  std::string option_text(double eps, std::optional<double> momentum) const;

  int64_t num_features_;
};

// Registers the tensors of `State`, which derives from FeatureNormState and is constructed from
// (layer, num_features, options, site), under their names.
template <class Derived, class State>
class FeatureNorm : public Module<Derived>, public State {
 protected:
  template <class Options>
  FeatureNorm(const char* layer, int64_t num_features, const Options& options, Site site)
      : State(layer, num_features, options, site) {
    this->register_parameter("weight", this->weight, Site::none());
    this->register_parameter("bias", this->bias, Site::none());
    this->register_buffer("running_mean", this->running_mean, true, Site::none());
    this->register_buffer("running_var", this->running_var, true, Site::none());
    this->register_buffer("num_batches_tracked", this->num_batches_tracked, true, Site::none());
    this->set_extra_repr(this->option_text(options.eps, options.momentum));
  }
};

}  // namespace flow::nn
