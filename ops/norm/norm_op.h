// Op definitions of layer_norm and rms_norm, for their kernels.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct NormAttrs {
  int64_t num_dims = 1;  // how many trailing dims are normalised
  double eps = 1e-5;

  static constexpr auto fields() {
    return std::tuple(key_field("num_dims", &NormAttrs::num_dims),
                      value_field("eps", &NormAttrs::eps));
  }
};

// Weights and biases are optional. The gradients compute the statistics again, which is cheap while
// a row is in cache and saves two outputs.
extern const OpDef kLayerNorm;          // (x, weight, bias) -> y
extern const OpDef kLayerNormBackward;  // (dy, x, weight) -> dx, dweight, dbias
extern const OpDef kRmsNorm;            // (x, weight) -> y
extern const OpDef kRmsNormBackward;    // (dy, x, weight) -> dx, dweight

}  // namespace flow::ops
