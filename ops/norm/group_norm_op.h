// Op definitions of group_norm, for their kernels. x: (N, C, ...) with elements after the channels.
#pragma once

#include <tuple>

#include "core/op.h"
#include "core/tensor.h"

namespace flow::ops {

struct GroupNormAttrs {
  int64_t group_size = 1;  // channels
  double eps = 1e-5;

  static constexpr auto fields() {
    return std::tuple(key_field("group_size", &GroupNormAttrs::group_size),
                      value_field("eps", &GroupNormAttrs::eps));
  }
};

// Weights and biases (C) are optional. The gradients compute the statistics again, as those of
// layer_norm do.
extern const OpDef kGroupNorm;          // (x, weight, bias) -> y
extern const OpDef kGroupNormBackward;  // (dy, x, weight) -> dx, dweight, dbias

// (N, C, ...) as (N, groups, elements of a group).
Shape grouped_shape(const Shape& x, int64_t num_groups);
// A vector over the channels as a tensor of `dim` dims that broadcasts to x.
Tensor over_channels(const Tensor& parameter, int64_t dim);

}  // namespace flow::ops
