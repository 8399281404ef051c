// What layers share that normalise features and may keep running statistics of them.
#pragma once

#include <cstdint>

#include "nn/module.h"

namespace flow::nn {

// Undefined where the options leave them out. weight and running_var start at 1, the others at 0.
class FeatureNormState {
 public:
  Tensor weight, bias;
  Tensor running_mean, running_var, num_batches_tracked;

 protected:
  FeatureNormState(int64_t num_features, bool affine, bool track_running_stats);
};

// Registers the tensors of `State`, a FeatureNormState made of (num_features, options), under their
// names.
template <class Derived, class State>
class FeatureNorm : public Module<Derived>, public State {
 protected:
  template <class Options>
  FeatureNorm(int64_t num_features, const Options& options) : State(num_features, options) {
    this->register_parameter("weight", this->weight);
    this->register_parameter("bias", this->bias);
    this->register_buffer("running_mean", this->running_mean);
    this->register_buffer("running_var", this->running_var);
    this->register_buffer("num_batches_tracked", this->num_batches_tracked);
  }
};

}  // namespace flow::nn
