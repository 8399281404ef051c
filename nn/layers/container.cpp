#include "nn/layers/container.h"

namespace flow::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (AnyModule& module : modules_)
    y = module(y);
  return y;
}

}  // namespace flow::nn
