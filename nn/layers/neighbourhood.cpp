#include "nn/layers/neighbourhood.h"

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"

namespace flow::nn {

using internal::text_of;

namespace {
std::string lp_pool_text(double norm_type, const Ints& kernel, const LpPoolOptions& options) {
  return str("norm_type=", text_of(norm_type), ", kernel_size=", text_of(kernel),
             ", stride=", options.stride.empty() ? "None" : text_of(options.stride),
             ", ceil_mode=", text_of(options.ceil_mode));
}

void check_lp_pool(const char* layer, int64_t spatial_dims, double norm_type,
                   const Ints& kernel_size, const LpPoolOptions& options, Site site) {
  if (norm_type == 0) {
    throw InvalidArgument(str("[", layer, "] norm_type must not be 0; received ", norm_type), site);
  }
  const Ints& stride = options.stride.empty() ? kernel_size : options.stride;
  internal::check_numbers(layer, spatial_dims,
                          {{"kernel_size", kernel_size, 1}, {"stride", stride, 1}}, site);
}
}  // namespace

LocalResponseNorm::LocalResponseNorm(int64_t size, LocalResponseNormOptions options, Site site)
    : size_(size), options_(options) {
  internal::check_positive("LocalResponseNorm", {{"size", size}}, site);
  set_extra_repr(str(size_, ", alpha=", text_of(options_.alpha), ", beta=", text_of(options_.beta),
                     ", k=", text_of(options_.k)));
}

Tensor LocalResponseNorm::forward(const Tensor& x) {
  return local_response_norm(x, size_, options_);
}

LPPool1d::LPPool1d(double norm_type, Ints kernel_size, LpPoolOptions options, Site site)
    : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_lp_pool("LPPool1d", 1, norm_type_, kernel_size_, options_, site);
  set_extra_repr(str(lp_pool_text(norm_type_, kernel_size_, options_)));
}

Tensor LPPool1d::forward(const Tensor& x) {
  return lp_pool1d(x, norm_type_, kernel_size_, options_);
}

LPPool2d::LPPool2d(double norm_type, Ints kernel_size, LpPoolOptions options, Site site)
    : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_lp_pool("LPPool2d", 2, norm_type_, kernel_size_, options_, site);
  set_extra_repr(str(lp_pool_text(norm_type_, kernel_size_, options_)));
}

Tensor LPPool2d::forward(const Tensor& x) {
  return lp_pool2d(x, norm_type_, kernel_size_, options_);
}

LPPool3d::LPPool3d(double norm_type, Ints kernel_size, LpPoolOptions options, Site site)
    : norm_type_(norm_type), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_lp_pool("LPPool3d", 3, norm_type_, kernel_size_, options_, site);
  set_extra_repr(str(lp_pool_text(norm_type_, kernel_size_, options_)));
}

Tensor LPPool3d::forward(const Tensor& x) {
  return lp_pool3d(x, norm_type_, kernel_size_, options_);
}

ChannelShuffle::ChannelShuffle(int64_t groups, Site site) : groups_(groups) {
  internal::check_positive("ChannelShuffle", {{"groups", groups}}, site);
  set_extra_repr(str("groups=", groups));
}

Tensor ChannelShuffle::forward(const Tensor& x) {
  return channel_shuffle(x, groups_);
}

}  // namespace flow::nn
