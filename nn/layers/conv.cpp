#include "nn/layers/conv.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"

namespace flow::nn {

namespace {
struct Parameters {
  Tensor weight, bias;
};

Parameters make_parameters(const char* layer, int64_t spatial_dims, int64_t in_channels,
                           int64_t out_channels, const Ints& kernel_size, int64_t groups,
                           bool has_bias, bool is_transposed) {
  internal::check_positive(layer, {{"groups", groups}}, Site::none());
  internal::check_sizes(layer, {{"in_channels", in_channels}, {"out_channels", out_channels}},
                        Site::none());
  if (in_channels % groups != 0 || out_channels % groups != 0) {
    throw InvalidArgument(str("[", layer, "] channels must be divisible by groups; received ",
                              in_channels, " in, ", out_channels, " out, groups ", groups));
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

// Whether a number is not `usual`; an empty list has none.
bool has_other(const Ints& values, int64_t usual) {
  return std::any_of(values.begin(), values.end(), [=](int64_t value) { return value != usual; });
}

std::string option_text(int64_t dims, int64_t in_channels, int64_t out_channels,
                        const Ints& kernel_size, const Ints& stride, const std::string& padding,
                        const Ints& dilation, const Ints& output_padding, int64_t groups,
                        bool has_bias) {
  using internal::tuple_text;
  std::string text =
      str(in_channels, ", ", out_channels, ", kernel_size=", tuple_text(kernel_size, dims),
          ", stride=", tuple_text(stride, dims), padding);
  if (has_other(dilation, 1)) text += ", dilation=" + tuple_text(dilation, dims);
  if (has_other(output_padding, 0)) text += ", output_padding=" + tuple_text(output_padding, dims);
  if (groups != 1) text += str(", groups=", groups);
  if (!has_bias) text += ", bias=False";
  return text;
}

std::string option_text(int64_t dims, int64_t in_channels, int64_t out_channels,
                        const Ints& kernel_size, const Conv2dOptions& o) {
  std::string padding;
  if (o.padding.mode() == Padding::Mode::kSame) padding = ", padding=same";
  if (o.padding.mode() == Padding::Mode::kValid) padding = ", padding=valid";
  if (has_other(o.padding.numbers(), 0)) {
    padding = ", padding=" + internal::tuple_text(o.padding.numbers(), dims);
  }
  const std::string text = option_text(dims, in_channels, out_channels, kernel_size, o.stride,
                                       padding, o.dilation, {}, o.groups, o.bias);
  return o.padding_mode == "zeros" ? text : text + ", padding_mode=" + o.padding_mode;
}

std::string option_text(int64_t dims, int64_t in_channels, int64_t out_channels,
                        const Ints& kernel_size, const ConvTranspose2dOptions& o) {
  const std::string padding =
      has_other(o.padding, 0) ? ", padding=" + internal::tuple_text(o.padding, dims) : "";
  return option_text(dims, in_channels, out_channels, kernel_size, o.stride, padding, o.dilation,
                     o.output_padding, o.groups, o.bias);
}

ConvTransposeOptions op_options(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
                                const ConvTranspose2dOptions& options, Site site) {
  internal::check_numbers(layer, spatial_dims,
                          {{"kernel_size", kernel_size, 1},
                           {"stride", options.stride, 1},
                           {"padding", options.padding, 0},
                           {"output_padding", options.output_padding, 0},
                           {"dilation", options.dilation, 1}},
                          site);
  return {.stride = options.stride,
          .padding = options.padding,
          .output_padding = options.output_padding,
          .groups = options.groups,
          .dilation = options.dilation};
}

// Padding before and after each spatial dim, last dim first. If "same" needs an odd total, the
// extra element is at the end.
std::vector<int64_t> pad_amounts(int64_t spatial_dims, const Ints& kernel_size,
                                 const Conv2dOptions& options) {
  const Ints& numbers = options.padding.numbers();
  const bool is_same = options.padding.mode() == Padding::Mode::kSame;
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
                         const Conv2dOptions& given, Site site)
    : options{.stride = given.stride,
              .padding = given.padding,
              .dilation = given.dilation,
              .groups = given.groups} {
  const SiteScope scope(site);
  internal::check_numbers(layer, spatial_dims,
                          {{"kernel_size", kernel_size, 1},
                           {"stride", given.stride, 1},
                           {"dilation", given.dilation, 1}},
                          site);
  if (given.padding.mode() == Padding::Mode::kNumbers) {
    internal::check_numbers(layer, spatial_dims, {{"padding", given.padding.numbers(), 0}}, site);
  }
  const std::string& mode = given.padding_mode;
  if (mode == "zeros") return;
  if (mode != "reflect" && mode != "replicate" && mode != "circular") {
    throw InvalidArgument(str("[", layer, "] unknown padding_mode; received '", mode,
                              "'; give zeros, reflect, replicate or circular"));
  }
  options.padding = 0;
  if (given.padding.mode() == Padding::Mode::kValid) return;
  amounts = pad_amounts(spatial_dims, kernel_size, given);
  pad_options.mode = mode;
}

Tensor ConvPadding::apply(const Tensor& x) const {
  return amounts.empty() ? x : pad(x, amounts, pad_options);
}

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv1dOptions& options, Site site)
    : padding_("Conv1d", 1, kernel_size, options, site) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("Conv1d", 1, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(1, in_channels, out_channels, kernel_size, options));
}

Tensor Conv1d::forward(const Tensor& x) {
  return conv1d(padding_.apply(x), weight, bias, padding_.options);
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv2dOptions& options, Site site)
    : padding_("Conv2d", 2, kernel_size, options, site) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("Conv2d", 2, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(2, in_channels, out_channels, kernel_size, options));
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(padding_.apply(x), weight, bias, padding_.options);
}

Conv3d::Conv3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const Conv3dOptions& options, Site site)
    : padding_("Conv3d", 3, kernel_size, options, site) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("Conv3d", 3, in_channels, out_channels, kernel_size,
                                          options.groups, options.bias, false);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(3, in_channels, out_channels, kernel_size, options));
}

Tensor Conv3d::forward(const Tensor& x) {
  return conv3d(padding_.apply(x), weight, bias, padding_.options);
}

ConvTranspose1d::ConvTranspose1d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose1dOptions& options, Site site)
    : options_(op_options("ConvTranspose1d", 1, kernel_size, options, site)) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("ConvTranspose1d", 1, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(1, in_channels, out_channels, kernel_size, options));
}

Tensor ConvTranspose1d::forward(const Tensor& x) {
  return conv_transpose1d(x, weight, bias, options_);
}

ConvTranspose2d::ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose2dOptions& options, Site site)
    : options_(op_options("ConvTranspose2d", 2, kernel_size, options, site)) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("ConvTranspose2d", 2, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(2, in_channels, out_channels, kernel_size, options));
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias, options_);
}

ConvTranspose3d::ConvTranspose3d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
                                 const ConvTranspose3dOptions& options, Site site)
    : options_(op_options("ConvTranspose3d", 3, kernel_size, options, site)) {
  const SiteScope scope(site);
  const Parameters made = make_parameters("ConvTranspose3d", 3, in_channels, out_channels,
                                          kernel_size, options.groups, options.bias, true);
  weight = register_parameter("weight", made.weight);
  bias = register_parameter("bias", made.bias);
  set_extra_repr(option_text(3, in_channels, out_channels, kernel_size, options));
}

Tensor ConvTranspose3d::forward(const Tensor& x) {
  return conv_transpose3d(x, weight, bias, options_);
}

}  // namespace flow::nn
