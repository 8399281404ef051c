// Sums over a channel and affine maps of one, of which batch_norm and its gradients are made.
// Channels are dim 1 of x; sums are float64, so that a mean
// square less a squared mean keeps its digits.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct MomentsAttrs {
  int64_t count = 1;  // logical elements of a channel

  static constexpr auto fields() { return std::tuple(value_field("count", &MomentsAttrs::count)); }
};

// (x, scale (C), shift (C) or none) -> x scale + shift of each channel.
extern const OpDef kChannelAffine;
// (a, b) -> (2, C): sum(a b), sum(a) of each channel.
extern const OpDef kChannelDot;
// x -> (2, C): sum(x^2), sum(x) of each channel.
extern const OpDef kChannelSquares;
// kChannelSquares' sums -> (2, C): mean, biased variance. The one op that needs whole sums, so that
// a global batch is reduced once.
extern const OpDef kChannelMoments;
// (gradient of the moments, moments) -> (2, C): gradient of the sums.
extern const OpDef kChannelMomentsBackward;

Tensor channel_affine(const TensorArg& x, const Tensor& scale, const Tensor& shift = Tensor());
Tensor channel_dot(const TensorArg& a, const Tensor& b);

}  // namespace flow::ops
