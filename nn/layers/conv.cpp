#include "nn/layers/conv.h"

#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "ops/creation.h"

namespace flow::nn {

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv2dOptions& options)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {
  if (options.groups <= 0 || in_channels % options.groups != 0 ||
      out_channels % options.groups != 0) {
    throw InvalidArgument(str("[Conv2d] channels must be divisible by groups; received ",
                              in_channels, " in, ", out_channels, " out, groups ", options.groups));
  }
  if (kernel_size.size() != 1 && kernel_size.size() != 2) {
    throw InvalidArgument(
        str("[Conv2d] kernel_size is one number or two; received ", kernel_size.size()));
  }
  const int64_t height = kernel_size[0];
  const int64_t width = kernel_size[kernel_size.size() - 1];
  const Shape shape{out_channels, in_channels / options.groups, height, width};
  const double inputs = static_cast<double>(shape[1] * height * width);
  const double bound = inputs > 0 ? 1 / std::sqrt(inputs) : 0;
  weight = register_parameter("weight", init::uniform_(empty(shape), -bound, bound));
  bias = register_parameter(
      "bias", options.bias ? init::uniform_(empty({out_channels}), -bound, bound) : Tensor());
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias, options_);
}

}  // namespace flow::nn
