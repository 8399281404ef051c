// A multi-layer perceptron.
#pragma once

#include <string>
#include <vector>

#include "nn/layers/container.h"
#include "nn/layers/linear.h"

namespace flow::models {

// sizes: the features of the input, hidden and output layers, at least two numbers. x: (N, …) is
// flattened to (N, sizes.front()) → (N, sizes.back()). The layers are named fc1, fc2, …;
// activations[i], "relu" (the default) or "tanh", follows every layer but the last. Too few sizes
// or another activation is InvalidArgument.
class Mlp : public nn::Module<Mlp> {
 public:
  explicit Mlp(const std::vector<int64_t>& sizes, std::vector<std::string> activations = {},
               Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  std::vector<nn::Linear> layers_;
  std::vector<std::string> activations_;
};

}  // namespace flow::models
