// Sums over a channel and affine maps of a channel. batch_norm and its gradients are composed of
// these. Channels are dim 1 of x. Sums are float64, so that the difference of a mean square and a
// squared mean keeps its precision.
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
// Takes the sums of kChannelSquares -> (2, C): mean, biased variance. This is the only op that
// needs complete sums, so a global batch is reduced once (batch_norm of float64: twice).
extern const OpDef kChannelMoments;
// (gradient of the moments, moments) -> (2, C): gradient of the sums.
extern const OpDef kChannelMomentsBackward;

// The dim of the channels.
inline constexpr int64_t kChannels = 1;

// The dtype of what belongs to a channel of an input of dtype x: weights, scales and their
// gradients.
inline DType channel_dtype(DType x) {
  return is_half(x) ? DType::kFloat32 : x;
}

// Input x must be floating and have channels.
void check_channels(const OpContext& ctx, int x);

Tensor channel_affine(const TensorArg& x, const Tensor& scale, const Tensor& shift = Tensor());
Tensor channel_dot(const TensorArg& a, const Tensor& b);

}  // namespace flow::ops
