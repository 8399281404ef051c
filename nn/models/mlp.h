// Multi-layer perceptron.
#pragma once

#include <string>
#include <vector>

#include "nn/layers/container.h"
#include "nn/layers/linear.h"

namespace flow::models {

// x: (N, …) is flattened to (N, sizes.front()) → (N, sizes.back()). Layers fc1, fc2, … with
// `activations[i]` ("relu" or "tanh") after layer i but the last; relu where none is given.
class Mlp : public nn::Module<Mlp> {
 public:
  explicit Mlp(const std::vector<int64_t>& sizes, std::vector<std::string> activations = {});
  Tensor forward(const Tensor& x);

 private:
  std::vector<nn::Linear> layers_;
  std::vector<std::string> activations_;
};

}  // namespace flow::models
