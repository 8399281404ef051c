#include "nn/layers/pool.h"

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"

namespace flow::nn {

using internal::text_of;
using internal::tuple_text;

namespace {

MaxUnpoolOptions with_size(MaxUnpoolOptions options, const Ints& output_size) {
  if (!output_size.empty()) options.output_size = output_size;
  return options;
}

std::string window_text(const std::string& kernel, const std::string& stride,
                        const std::string& padding) {
  return "kernel_size=" + kernel + ", stride=" + stride + ", padding=" + padding;
}

std::string max_pool_text(const Ints& kernel, const MaxPoolOptions& options) {
  return window_text(text_of(kernel), text_of(options.stride.empty() ? kernel : options.stride),
                     text_of(options.padding)) +
         ", dilation=" + text_of(options.dilation) + ", ceil_mode=" + text_of(options.ceil_mode);
}

// An empty stride means the size of the kernel.
template <class Options>
void check_windows(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
                   const Options& options, Site site) {
  const Ints& stride = options.stride.empty() ? kernel_size : options.stride;
  internal::check_numbers(
      layer, spatial_dims,
      {{"kernel_size", kernel_size, 1}, {"stride", stride, 1}, {"padding", options.padding, 0}},
      site);
  if constexpr (requires { options.dilation; }) {
    internal::check_numbers(layer, spatial_dims, {{"dilation", options.dilation, 1}}, site);
  }
}

void check_fractions(const char* layer, int64_t spatial_dims, const Ints& kernel_size,
                     const FractionalMaxPoolOptions& options, Site site) {
  internal::check_numbers(layer, spatial_dims, {{"kernel_size", kernel_size, 1}}, site);
  const std::vector<double>& ratios = options.output_ratio;
  if (options.output_size.empty() == ratios.empty()) {
    throw InvalidArgument(str("[", layer, "] needs output_size or output_ratio; received ",
                              ratios.empty() ? "neither" : "both", "; give one"),
                          site);
  }
  if (ratios.empty()) {
    internal::check_numbers(layer, spatial_dims, {{"output_size", options.output_size, 0}}, site);
  }
  for (const double ratio : ratios) {
    if (ratio > 0 && ratio < 1) continue;
    throw InvalidArgument(
        str("[", layer, "] output_ratio must be between 0 and 1; received ", ratio), site);
  }
}

}  // namespace

MaxPool1d::MaxPool1d(Ints kernel_size, MaxPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxPool1d", 1, kernel_size_, options_, site);
  set_extra_repr(str(max_pool_text(kernel_size_, options_)));
}

Tensor MaxPool1d::forward(const Tensor& x) {
  return max_pool1d(x, kernel_size_, options_);
}

MaxPool2d::MaxPool2d(Ints kernel_size, MaxPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxPool2d", 2, kernel_size_, options_, site);
  set_extra_repr(str(max_pool_text(kernel_size_, options_)));
}

Tensor MaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, kernel_size_, options_);
}

FractionalMaxPool2d::FractionalMaxPool2d(Ints kernel_size, FractionalMaxPoolOptions options,
                                         Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_fractions("FractionalMaxPool2d", 2, kernel_size_, options_, site);
}

Tensor FractionalMaxPool2d::forward(const Tensor& x) {
  return fractional_max_pool2d(x, kernel_size_, options_);
}

ValuesIndices FractionalMaxPool2d::forward_with_indices(const Tensor& x) {
  return fractional_max_pool2d_with_indices(x, kernel_size_, options_);
}

FractionalMaxPool3d::FractionalMaxPool3d(Ints kernel_size, FractionalMaxPoolOptions options,
                                         Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_fractions("FractionalMaxPool3d", 3, kernel_size_, options_, site);
}

Tensor FractionalMaxPool3d::forward(const Tensor& x) {
  return fractional_max_pool3d(x, kernel_size_, options_);
}

ValuesIndices FractionalMaxPool3d::forward_with_indices(const Tensor& x) {
  return fractional_max_pool3d_with_indices(x, kernel_size_, options_);
}

AvgPool1d::AvgPool1d(Ints kernel_size, AvgPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("AvgPool1d", 1, kernel_size_, options_, site);
  set_extra_repr(
      str(window_text(tuple_text(kernel_size_, 1),
                      tuple_text(options_.stride.empty() ? kernel_size_ : options_.stride, 1),
                      tuple_text(options_.padding, 1))));
}

Tensor AvgPool1d::forward(const Tensor& x) {
  return avg_pool1d(x, kernel_size_, options_);
}

AvgPool2d::AvgPool2d(Ints kernel_size, AvgPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("AvgPool2d", 2, kernel_size_, options_, site);
  set_extra_repr(str(window_text(text_of(kernel_size_),
                                 text_of(options_.stride.empty() ? kernel_size_ : options_.stride),
                                 text_of(options_.padding))));
}

Tensor AvgPool2d::forward(const Tensor& x) {
  return avg_pool2d(x, kernel_size_, options_);
}

AdaptiveAvgPool1d::AdaptiveAvgPool1d(int64_t output_size, Site site) : output_size_(output_size) {
  internal::check_sizes("AdaptiveAvgPool1d", {{"output_size", output_size}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveAvgPool1d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(x.unsqueeze(-2), {1, output_size_}).squeeze(-2);
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Ints output_size, Site site)
    : output_size_(std::move(output_size)) {
  internal::check_numbers("AdaptiveAvgPool2d", 2, {{"output_size", output_size_, 0}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(x, output_size_);
}

MaxPool3d::MaxPool3d(Ints kernel_size, MaxPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxPool3d", 3, kernel_size_, options_, site);
  set_extra_repr(str(max_pool_text(kernel_size_, options_)));
}

Tensor MaxPool3d::forward(const Tensor& x) {
  return max_pool3d(x, kernel_size_, options_);
}

AvgPool3d::AvgPool3d(Ints kernel_size, AvgPoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("AvgPool3d", 3, kernel_size_, options_, site);
  set_extra_repr(str(window_text(text_of(kernel_size_),
                                 text_of(options_.stride.empty() ? kernel_size_ : options_.stride),
                                 text_of(options_.padding))));
}

Tensor AvgPool3d::forward(const Tensor& x) {
  return avg_pool3d(x, kernel_size_, options_);
}

AdaptiveAvgPool3d::AdaptiveAvgPool3d(Ints output_size, Site site)
    : output_size_(std::move(output_size)) {
  internal::check_numbers("AdaptiveAvgPool3d", 3, {{"output_size", output_size_, 0}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveAvgPool3d::forward(const Tensor& x) {
  return adaptive_avg_pool3d(x, output_size_);
}

AdaptiveMaxPool1d::AdaptiveMaxPool1d(Ints output_size, Site site)
    : output_size_(std::move(output_size)) {
  internal::check_numbers("AdaptiveMaxPool1d", 1, {{"output_size", output_size_, 0}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveMaxPool1d::forward(const Tensor& x) {
  return adaptive_max_pool1d(x, output_size_);
}

AdaptiveMaxPool2d::AdaptiveMaxPool2d(Ints output_size, Site site)
    : output_size_(std::move(output_size)) {
  internal::check_numbers("AdaptiveMaxPool2d", 2, {{"output_size", output_size_, 0}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveMaxPool2d::forward(const Tensor& x) {
  return adaptive_max_pool2d(x, output_size_);
}

AdaptiveMaxPool3d::AdaptiveMaxPool3d(Ints output_size, Site site)
    : output_size_(std::move(output_size)) {
  internal::check_numbers("AdaptiveMaxPool3d", 3, {{"output_size", output_size_, 0}}, site);
  set_extra_repr(str("output_size=", text_of(output_size_)));
}

Tensor AdaptiveMaxPool3d::forward(const Tensor& x) {
  return adaptive_max_pool3d(x, output_size_);
}

ValuesIndices MaxPool1d::forward_with_indices(const Tensor& x) {
  return max_pool1d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool1d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool1d_with_indices(x, output_size_);
}

MaxUnpool1d::MaxUnpool1d(Ints kernel_size, MaxUnpoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxUnpool1d", 1, kernel_size_, options_, site);
  set_extra_repr(
      str(window_text(tuple_text(kernel_size_, 1),
                      tuple_text(options_.stride.empty() ? kernel_size_ : options_.stride, 1),
                      tuple_text(options_.padding, 1))));
}

Tensor MaxUnpool1d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool1d(x, indices, kernel_size_, with_size(options_, output_size));
}

ValuesIndices MaxPool2d::forward_with_indices(const Tensor& x) {
  return max_pool2d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool2d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool2d_with_indices(x, output_size_);
}

MaxUnpool2d::MaxUnpool2d(Ints kernel_size, MaxUnpoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxUnpool2d", 2, kernel_size_, options_, site);
  set_extra_repr(
      str(window_text(tuple_text(kernel_size_, 2),
                      tuple_text(options_.stride.empty() ? kernel_size_ : options_.stride, 2),
                      tuple_text(options_.padding, 2))));
}

Tensor MaxUnpool2d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool2d(x, indices, kernel_size_, with_size(options_, output_size));
}

ValuesIndices MaxPool3d::forward_with_indices(const Tensor& x) {
  return max_pool3d_with_indices(x, kernel_size_, options_);
}

ValuesIndices AdaptiveMaxPool3d::forward_with_indices(const Tensor& x) {
  return adaptive_max_pool3d_with_indices(x, output_size_);
}

MaxUnpool3d::MaxUnpool3d(Ints kernel_size, MaxUnpoolOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("MaxUnpool3d", 3, kernel_size_, options_, site);
  set_extra_repr(
      str(window_text(tuple_text(kernel_size_, 3),
                      tuple_text(options_.stride.empty() ? kernel_size_ : options_.stride, 3),
                      tuple_text(options_.padding, 3))));
}

Tensor MaxUnpool3d::forward(const Tensor& x, const Tensor& indices, const Ints& output_size) {
  return max_unpool3d(x, indices, kernel_size_, with_size(options_, output_size));
}

}  // namespace flow::nn
