// Op definitions of classification losses, for their kernels.
#pragma once

#include <initializer_list>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct ClassLossAttrs {
  bool reduces = false;  // true: one sum; false: a loss per target
  double label_smoothing = 0;
  int64_t num_classes = 0;
  int64_t ignore_index = -100;
  DType dtype = DType::kFloat32;  // of the input

  static constexpr auto fields() {
    return std::tuple(key_field("reduces", &ClassLossAttrs::reduces),
                      key_field("label_smoothing", &ClassLossAttrs::label_smoothing),
                      key_field("num_classes", &ClassLossAttrs::num_classes),
                      value_field("ignore_index", &ClassLossAttrs::ignore_index),
                      key_field("dtype", &ClassLossAttrs::dtype));
  }
};

// Weights are optional everywhere. Losses and their gradients are float32 for 16-bit inputs,
// because 16 bits cannot hold sums over many samples.
extern const OpDef kNllLoss;               // (logp, target, weight) -> loss
extern const OpDef kNllLossBackward;       // (dloss, target, weight) -> dlogp
extern const OpDef kCrossEntropy;          // (x, target, weight) -> loss, logsumexp(x)
extern const OpDef kCrossEntropyBackward;  // (dloss, x, target, logsumexp, weight) -> dx
// The weight of each target that is not ignored (1 without weights), or their sum.
extern const OpDef kTargetWeight;  // (target, weight) -> weight of target

// The class dim of an input whose target has `target_dims` dims, and the dim of the input that
// corresponds to dim `i` of the target.
inline int64_t class_dim(int64_t target_dims) {
  return target_dims == 0 ? 0 : 1;
}

inline int64_t input_dim(int64_t i) {
  return i == 0 ? 0 : i + 1;
}

// Returns true if the local parts belong to the same targets (see ops/local_parts.h; the shape
// rules here cover all classes). A null x means there is no x. Losses and their gradients may also
// be scalars.
bool parts_agree(const TensorMeta& target, const TensorMeta* x,
                 std::initializer_list<const TensorMeta*> losses);

}  // namespace flow::ops
