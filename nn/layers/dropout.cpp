#include "nn/layers/dropout.h"

#include "core/error.h"
#include "ops/dropout.h"

namespace flow::nn {

Dropout::Dropout(DropoutLayerOptions options) : p_(options.p) {
  if (!(p_ >= 0 && p_ <= 1)) {
    throw InvalidArgument(str("[Dropout] p is a probability in [0, 1]; got ", p_));
  }
}

Tensor Dropout::forward(const Tensor& x) {
  return dropout(x, {.p = p_, .training = is_training()});
}

}  // namespace flow::nn
