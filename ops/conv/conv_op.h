// Op definitions of convolutions, for kernels and other families' gradients.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/conv/window.h"

namespace flow::ops {

// The attrs of all convolution ops. Entries beyond the spatial dims keep their defaults.
struct ConvAttrs {
  SpatialInts stride{1, 1, 1};
  SpatialInts padding{};
  SpatialInts padding_end{};  // negative: the last windows that would fit are left out
  SpatialInts dilation{1, 1, 1};
  int64_t groups = 1;
  // The logical sizes that the shapes of the operands do not determine: the spatial sizes of dx
  // (conv_backward_input) or of the kernel (conv_backward_weight); 0 for conv.
  SpatialInts size{};

  static constexpr auto fields() {
    return std::tuple(key_field("stride", &ConvAttrs::stride),
                      key_field("padding", &ConvAttrs::padding),
                      key_field("padding_end", &ConvAttrs::padding_end),
                      key_field("dilation", &ConvAttrs::dilation),
                      key_field("groups", &ConvAttrs::groups), key_field("size", &ConvAttrs::size));
  }
};

// x, weight, bias (optional) -> y.
extern const OpDef kConv;
// dy, weight -> dx.
extern const OpDef kConvBackwardInput;
// x, dy -> dw.
extern const OpDef kConvBackwardWeight;
// x, dy -> dw, db. A single pass over dy computes both.
extern const OpDef kConvBackwardWeightBias;

// The sizes of a convolution y = conv(x, weight), whichever two of the tensors are the operands.
// Missing spatial dims come first and have size 1.
struct ConvSizes {
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t groups = 1;
  int num_dims = 0;
  std::array<WindowDim, kMaxSpatialDims> window;  // depth, height, width

  int64_t in_size() const { return window[0].in * window[1].in * window[2].in; }

  int64_t out_size() const { return window[0].out * window[1].out * window[2].out; }

  int64_t kernel_size() const { return window[0].kernel * window[1].kernel * window[2].kernel; }

  // The number of multiply-adds, including those with padding.
  double volume() const;
};

// Takes logical or local shapes. The number of groups follows from the channels, because a rank may
// hold only some of the groups.
ConvSizes conv_sizes(const Shape& x, const Shape& weight, const Shape& y, const ConvAttrs& attrs);

}  // namespace flow::ops
