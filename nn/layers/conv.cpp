#include "nn/layers/conv.h"

#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "ops/creation/creation.h"

namespace flow::nn {

namespace {
struct Parameters {
  Tensor weight, bias;
};

Parameters make_parameters(const char* layer, int64_t spatial_dims, int64_t in_channels,
                           int64_t out_channels, const Ints& kernel_size, int64_t groups,
                           bool has_bias, bool is_transposed) {
  if (groups <= 0 || in_channels % groups != 0 || out_channels % groups != 0) {
    throw InvalidArgument(str("[", layer, "] channels must be divisible by groups; received ",
                              in_channels, " in, ", out_channels, " out, groups ", groups));
  }
  if (kernel_size.size() != 1 && kernel_size.size() != spatial_dims) {
    throw InvalidArgument(str("[", layer, "] kernel_size must be one number or ", spatial_dims,
                              " numbers; received ", kernel_size.size(),
                              "; give one, or one for each spatial dim"));
  }
  std::vector<int64_t> shape{is_transposed ? in_channels : out_channels,
                             (is_transposed ? out_channels : in_channels) / groups};
  for (int64_t i = 0; i < spatial_dims; ++i)
    shape.push_back(kernel_size[kernel_size.size() == 1 ? 0 : i]);
  const Tensor weight = empty(Shape(shape));
  const auto inputs = static_cast<double>(init::fan_in(weight));
  const double bound = inputs > 0 ? 1 / std::sqrt(inputs) : 0;
  init::uniform_(weight, -bound, bound);
  return {weight, has_bias ? init::uniform_(empty({out_channels}), -bound, bound) : Tensor()};
}

int64_t entry(const Ints& values, int64_t i) {
  return values[values.size() == 1 ? 0 : i];
}

ConvTransposeOptions op_options(const ConvTranspose2dOptions& options) {
  return {.stride = options.stride,
          .padding = options.padding,
          .output_padding = options.output_padding,
          .groups = options.groups,
          .dilation = options.dilation};
}

// Padding before and after each spatial dim, last dim first. If "same" needs an odd total, the
// extra element is at the end.
std::vector<int64_t> pad_amounts(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
                                 const Conv2dOptions& options) {
  const Ints& numbers = options.padding.numbers();
  const bool is_same = options.padding.mode() == Padding::Mode::kSame;
  for (const Ints* values : {is_same ? &options.dilation : &numbers, &kernel_size}) {
    if (values->size() != 1 && values->size() != spatial_dims) {
      throw InvalidArgument(str(
          "[", layer, "] kernel_size, padding and dilation must be one number or ", spatial_dims,
          " numbers; received ", values->size(), "; give one, or one for each spatial dim"));
    }
  }
  std::vector<int64_t> amounts;
  for (int64_t i = spatial_dims; i-- > 0;) {
    const int64_t total =
        is_same ? entry(options.dilation, i) * (entry(kernel_size, i) - 1) : 2 * entry(numbers, i);
    amounts.push_back(total / 2);
    amounts.push_back(total - total / 2);
  }
  return amounts;
}
}  // namespace

ConvPadding::ConvPadding(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
                         const Conv2dOptions& given)
    : options{.stride = given.stride,
              .padding = given.padding,
              .dilation = given.dilation,
              .groups = given.groups} {
  const std::string& mode = given.padding_mode;
  if (mode == "zeros") return;
  if (mode != "reflect" && mode != "replicate" && mode != "circular") {
    throw InvalidArgument(str("[", layer, "] unknown padding_mode; received '", mode,
                              "'; give zeros, reflect, replicate or circular"));
  }
  options.padding = 0;
  if (given.padding.mode() == Padding::Mode::kValid) return;
  amounts = pad_amounts(layer, spatial_dims, kernel_size, given);
  pad_options.mode = mode;
}

Tensor ConvPadding::apply(const Tensor& x) const {
  return amounts.empty() ? x : pad(x, amounts, pad_options);
}

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv1dOptions& options)
    : padding_("Conv1d", 1, kernel_size, options) {
  const Parameters made = make_parameters("Conv1d", 1, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv1d::forward(const Tensor& x) {
  return conv1d(padding_.apply(x), weight, bias, padding_.options);
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv2dOptions& options)
    : padding_("Conv2d", 2, kernel_size, options) {
  const Parameters made = make_parameters("Conv2d", 2, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(padding_.apply(x), weight, bias, padding_.options);
}

Conv3d::Conv3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv3dOptions& options)
    : padding_("Conv3d", 3, kernel_size, options) {
  const Parameters made = make_parameters("Conv3d", 3, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor Conv3d::forward(const Tensor& x) {
  return conv3d(padding_.apply(x), weight, bias, padding_.options);
}

ConvTranspose1d::ConvTranspose1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose1dOptions& options)
    : options_(op_options(options)) {
  const Parameters made = make_parameters("ConvTranspose1d", 1, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose1d::forward(const Tensor& x) {
  return conv_transpose1d(x, weight, bias, options_);
}

ConvTranspose2d::ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose2dOptions& options)
    : options_(op_options(options)) {
  const Parameters made = make_parameters("ConvTranspose2d", 2, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias, options_);
}

ConvTranspose3d::ConvTranspose3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose3dOptions& options)
    : options_(op_options(options)) {
  const Parameters made = make_parameters("ConvTranspose3d", 3, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
}

Tensor ConvTranspose3d::forward(const Tensor& x) {
  return conv_transpose3d(x, weight, bias, options_);
}

}  // namespace flow::nn
