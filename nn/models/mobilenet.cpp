#include "nn/models/mobilenet.h"

#include <algorithm>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/conv.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/layers/rectifier.h"
#include "ops/conv/pool.h"
#include "ops/elementwise/binary.h"

namespace flow::models {

namespace {
nn::Conv2d make_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups) {
  nn::Conv2d conv(in, out, kernel,
                  {.stride = stride, .padding = (kernel - 1) / 2, .groups = groups, .bias = false});
  nn::init::kaiming_normal_(conv.weight, {.mode = "fan_out"});
  return conv;
}

nn::Sequential conv_norm_relu(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                              int64_t groups) {
  return nn::Sequential(make_conv(in, out, kernel, stride, groups), nn::BatchNorm2d(out),
                        nn::ReLU6());
}

// The multiple of `divisor` nearest to `value`, at least `divisor` and at least 0.9 value.
int64_t make_divisible(double value, int64_t divisor) {
  const auto rounded = static_cast<int64_t>(value + static_cast<double>(divisor) / 2);
  int64_t result = std::max(divisor, rounded / divisor * divisor);
  if (static_cast<double>(result) < 0.9 * value) result += divisor;
  return result;
}
}  // namespace

InvertedResidual::InvertedResidual(int64_t in_channels, int64_t out_channels, int64_t stride,
                                   int64_t expand_ratio, Site site)
    : adds_input_(stride == 1 && in_channels == out_channels) {
  const SiteScope scope(site);
  if (stride != 1 && stride != 2) {
    throw InvalidArgument(str("[InvertedResidual] stride must be 1 or 2; received ", stride));
  }
  const int64_t hidden = in_channels * expand_ratio;
  if (expand_ratio != 1) conv_.push_back(conv_norm_relu(in_channels, hidden, 1, 1, 1));
  conv_.push_back(conv_norm_relu(hidden, hidden, 3, stride, hidden));
  conv_.push_back(make_conv(hidden, out_channels, 1, 1, 1));
  conv_.push_back(nn::BatchNorm2d(out_channels));
  register_module("conv", conv_);
}

Tensor InvertedResidual::forward(const Tensor& x) {
  return adds_input_ ? x + conv_(x) : conv_(x);
}

MobileNetV2::MobileNetV2(const MobileNetV2Options& options, Site site) {
  const SiteScope scope(site);
  const auto scaled = [&](int64_t channels, double factor) {
    return make_divisible(static_cast<double>(channels) * factor, options.round_nearest);
  };
  int64_t channels = scaled(options.input_channel, options.width_mult);
  last_channel_ = scaled(options.last_channel, std::max(1.0, options.width_mult));
  features.push_back(conv_norm_relu(3, channels, 3, 2, 1));
  for (const auto& [expansion, width, blocks, stride] : options.inverted_residual_setting) {
    const int64_t out = scaled(width, options.width_mult);
    for (int64_t i = 0; i < blocks; ++i) {
      features.push_back(InvertedResidual(channels, out, i == 0 ? stride : 1, expansion));
      channels = out;
    }
  }
  features.push_back(conv_norm_relu(channels, last_channel_, 1, 1, 1));
  nn::Linear linear(last_channel_, options.num_classes);
  nn::init::normal_(linear.weight, 0, 0.01);
  nn::init::constant_(linear.bias, 0);
  classifier.push_back(nn::Dropout(options.dropout));
  classifier.push_back(linear);
  register_module("features", features);
  register_module("classifier", classifier);
}

Tensor MobileNetV2::forward(const Tensor& x) {
  return classifier(adaptive_avg_pool2d(features(x), 1).flatten(1));
}

MobileNetV2 mobilenet_v2(const MobileNetV2Options& options, Site site) {
  return MobileNetV2(options, site);
}

}  // namespace flow::models
