#include "nn/layers/dropout.h"

#include "core/error.h"
#include "ops/dropout.h"

namespace flow::nn {

Dropout::Dropout(DropoutLayerOptions options) : p_(options.p) {
  if (!(p_ >= 0 && p_ <= 1)) {
    throw InvalidArgument(str("[Dropout] p is ", p_, "; give a probability from 0 to 1"));
  }
}

Tensor Dropout::forward(const Tensor& x) {
  return dropout(x, {.p = p_, .training = is_training()});
}

}  // namespace flow::nn
