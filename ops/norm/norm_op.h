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

// Of layer_norm_narrow, whose results have a 16-bit dtype.
struct NarrowNormAttrs {
  int64_t num_dims = 1;
  double eps = 1e-5;
  DType dtype = DType::kBFloat16;

  static constexpr auto fields() {
    return std::tuple(key_field("num_dims", &NarrowNormAttrs::num_dims),
                      value_field("eps", &NarrowNormAttrs::eps),
                      key_field("dtype", &NarrowNormAttrs::dtype));
  }
};

// Weights and biases are optional. The gradients compute the statistics again, which is cheap while
// a row is in cache and saves two outputs.
extern const OpDef kLayerNorm;          // (x, weight, bias) -> y
extern const OpDef kLayerNormBackward;  // (dy, x, weight) -> dx, dweight, dbias
extern const OpDef kRmsNorm;            // (x, weight) -> y
extern const OpDef kRmsNormBackward;    // (dy, x, weight) -> dx, dweight

// The same as layer_norm and a cast of its result, and as a cast of dy and layer_norm's gradient:
// x and the parameters are float32, y and dy have 16 bits. Only the compiler of graphs makes calls
// of these ops (graph/passes/fuse_norm_casts.h).
extern const OpDef kLayerNormNarrow;          // (x, weight, bias) -> y
extern const OpDef kLayerNormNarrowBackward;  // (dy, x, weight) -> dx, dweight, dbias

}  // namespace flow::ops
