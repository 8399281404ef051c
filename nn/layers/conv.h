// Convolution and transposed convolution layers. Weights and biases are initialised as
// U(-1/√fan_in, 1/√fan_in), as in PyTorch. Negative channel counts and those that `groups`
// does not divide are InvalidArgument, and so are sizes of kernels, strides and dilations below 1
// and negative paddings.
#pragma once

#include <string>

#include "nn/module.h"
#include "ops/conv/conv.h"
#include "ops/shape/concat.h"

namespace flow::nn {

struct Conv2dOptions {
  Ints stride = 1;
  Padding padding = 0;  // amount per side, or "same" or "valid"
  Ints dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  // "zeros", "reflect", "replicate" or "circular"; see pad() in ops/shape/concat.h.
  std::string padding_mode = "zeros";
};

using Conv1dOptions = Conv2dOptions;
using Conv3dOptions = Conv2dOptions;

// The padding of a convolution layer. The convolution itself pads with zeros; in the other modes x
// is padded before the convolution.
struct ConvPadding {
  ConvPadding(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
              const Conv2dOptions& options, Site site);
  Tensor apply(const Tensor& x) const;

  ConvOptions options;
  Ints amounts = {};  // for pad(); empty if nothing is padded before the convolution
  PadOptions pad_options;
};

// x: (N, in_channels, L) → (N, out_channels, L'). weight: (out, in / groups, k).
class Conv1d : public Module<Conv1d> {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
         const Conv1dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvPadding padding_;
};

// x: (N, in_channels, H, W) → (N, out_channels, H', W'). weight: (out, in / groups, kH, kW).
class Conv2d : public Module<Conv2d> {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
         const Conv2dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvPadding padding_;
};

// x: (N, in_channels, D, H, W) → (N, out_channels, D', H', W').
// weight: (out, in / groups, kD, kH, kW).
class Conv3d : public Module<Conv3d> {
 public:
  Conv3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
         const Conv3dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvPadding padding_;
};

struct ConvTranspose2dOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Ints dilation = 1;
};

using ConvTranspose1dOptions = ConvTranspose2dOptions;
using ConvTranspose3dOptions = ConvTranspose2dOptions;

// x: (N, in_channels, L) → (N, out_channels, L'). weight: (in, out / groups, k). As in PyTorch,
// fan_in is computed as out / groups × k.
class ConvTranspose1d : public Module<ConvTranspose1d> {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                  const ConvTranspose1dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvTransposeOptions options_;
};

// x: (N, in_channels, H, W) → (N, out_channels, H', W'). weight: (in, out / groups, kH, kW).
class ConvTranspose2d : public Module<ConvTranspose2d> {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                  const ConvTranspose2dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvTransposeOptions options_;
};

// x: (N, in_channels, D, H, W) → (N, out_channels, D', H', W').
// weight: (in, out / groups, kD, kH, kW).
class ConvTranspose3d : public Module<ConvTranspose3d> {
 public:
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                  const ConvTranspose3dOptions& options = {}, Site site = Site::here());
  Tensor forward(const Tensor& x);

  Tensor weight, bias;

 private:
  ConvTransposeOptions options_;
};

}  // namespace flow::nn
