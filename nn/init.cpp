#include "nn/init.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/error.h"

namespace flow::nn::init {

namespace {
int64_t kernel_elements(const Tensor& weight) {
  if (weight.dim() < 2) {
    throw InvalidArgument(
        str("[init] fan-in needs at least two dims (out, in, …); received ", weight.meta()));
  }
  int64_t elements = 1;
  for (int64_t i = 2; i < weight.dim(); ++i)
    elements *= weight.size(i);
  return elements;
}
}  // namespace

int64_t fan_in(const Tensor& weight) {
  return weight.size(1) * kernel_elements(weight);
}

int64_t fan_out(const Tensor& weight) {
  return weight.size(0) * kernel_elements(weight);
}

const Tensor& uniform_(const Tensor& tensor, double a, double b) {
  const NoGradGuard no_grad;
  return tensor.uniform_(a, b);
}

const Tensor& normal_(const Tensor& tensor, double mean, double std) {
  const NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}

const Tensor& constant_(const Tensor& tensor, double value) {
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}

const Tensor& kaiming_uniform_(const Tensor& tensor, double a) {
  const double gain = std::sqrt(2.0 / (1 + a * a));
  const double bound = gain * std::sqrt(3.0 / static_cast<double>(fan_in(tensor)));
  return uniform_(tensor, -bound, bound);
}

const Tensor& xavier_uniform_(const Tensor& tensor, double gain) {
  const auto fans = static_cast<double>(fan_in(tensor) + fan_out(tensor));
  const double bound = gain * std::sqrt(6.0 / fans);
  return uniform_(tensor, -bound, bound);
}

}  // namespace flow::nn::init
