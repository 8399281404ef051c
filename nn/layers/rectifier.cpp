#include "nn/layers/rectifier.h"

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/creation/creation.h"

namespace flow::nn {

using internal::text_of;

Tensor ReLU::forward(const Tensor& x) {
  return relu(x);
}

Tensor ReLU6::forward(const Tensor& x) {
  return relu6(x);
}

Tensor SquareReLU::forward(const Tensor& x) {
  return square(relu(x));
}

LeakyReLU::LeakyReLU(LeakyReluOptions options) : options_(std::move(options)) {
  set_extra_repr(str("negative_slope=", text_of(options_.negative_slope)));
}

Tensor LeakyReLU::forward(const Tensor& x) {
  return leaky_relu(x, options_);
}

PReLU::PReLU(PReLUOptions options, Site site) {
  internal::check_sizes("PReLU", {{"num_parameters", options.num_parameters}}, site);
  weight = register_parameter("weight", full({options.num_parameters}, options.init));
  set_extra_repr(str("num_parameters=", options.num_parameters));
}

Tensor PReLU::forward(const Tensor& x) {
  return prelu(x, weight);
}

RReLU::RReLU(RReLUOptions options, Site site) : options_(std::move(options)) {
  if (options_.lower > options_.upper) {
    throw InvalidArgument(str("[RReLU] lower must not be above upper; received ", options_.lower,
                              " and ", options_.upper),
                          site);
  }
  set_extra_repr(str("lower=", text_of(options_.lower), ", upper=", text_of(options_.upper)));
}

Tensor RReLU::forward(const Tensor& x) {
  return rrelu(x, {.lower = options_.lower, .upper = options_.upper, .training = is_training()});
}

ELU::ELU(EluOptions options) : options_(std::move(options)) {
  set_extra_repr(str("alpha=", text_of(options_.alpha)));
}

Tensor ELU::forward(const Tensor& x) {
  return elu(x, options_);
}

CELU::CELU(CeluOptions options) : options_(std::move(options)) {
  set_extra_repr(str("alpha=", text_of(options_.alpha)));
}

Tensor CELU::forward(const Tensor& x) {
  return celu(x, options_);
}

Tensor SELU::forward(const Tensor& x) {
  return selu(x);
}

Hardtanh::Hardtanh(HardtanhOptions options, Site site) : options_(std::move(options)) {
  if (!(options_.min_val < options_.max_val)) {
    throw InvalidArgument(str("[Hardtanh] min_val must be below max_val; received ",
                              options_.min_val, " and ", options_.max_val),
                          site);
  }
  set_extra_repr(
      str("min_val=", text_of(options_.min_val), ", max_val=", text_of(options_.max_val)));
}

Tensor Hardtanh::forward(const Tensor& x) {
  return hardtanh(x, options_);
}

Threshold::Threshold(double threshold, double value) : threshold_(threshold), value_(value) {
  set_extra_repr(str("threshold=", text_of(threshold), ", value=", text_of(value)));
}

Tensor Threshold::forward(const Tensor& x) {
  return threshold(x, threshold_, value_);
}

Hardshrink::Hardshrink(ShrinkOptions options) : options_(std::move(options)) {
  set_extra_repr(str(text_of(options_.lambd)));
}

Tensor Hardshrink::forward(const Tensor& x) {
  return hardshrink(x, {.lambd = options_.lambd});
}

Softshrink::Softshrink(ShrinkOptions options, Site site) : options_(std::move(options)) {
  if (options_.lambd < 0) {
    throw InvalidArgument(str("[Softshrink] lambd must not be negative; received ", options_.lambd),
                          site);
  }
  set_extra_repr(str(text_of(options_.lambd)));
}

Tensor Softshrink::forward(const Tensor& x) {
  return softshrink(x, {.lambd = options_.lambd});
}

}  // namespace flow::nn
