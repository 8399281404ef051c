#include "nn/layers/pool.h"

namespace flow::nn {

Tensor MaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, kernel_size_, options_);
}

}  // namespace flow::nn
