#include "nn/models/lenet.h"

#include "ops/conv/pool.h"
#include "ops/elementwise/unary.h"

namespace flow::models {

Lenet::Lenet(LenetOptions options, Site site)
    : conv1_(register_module("conv1", nn::Conv2d(1, 32, 5, {.padding = "same"}))),
      conv2_(register_module("conv2", nn::Conv2d(32, 64, 5, {.padding = "same"}))),
      hidden_(register_module("hidden", nn::Linear(int64_t{64} * 7 * 7, 512))),
      dropout_(register_module("dropout", nn::Dropout(options.dropout, site))),
      outlayer_(register_module("outlayer", nn::Linear(512, options.num_classes, {}, site))) {}

Tensor Lenet::forward(const Tensor& x) {
  Tensor y = max_pool2d(relu(conv1_(x)), 2);
  y = max_pool2d(relu(conv2_(y)), 2);
  y = dropout_(relu(hidden_(y.flatten(1))));
  return outlayer_(y);
}

}  // namespace flow::models
