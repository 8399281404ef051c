#include "nn/layers/activation.h"

#include "core/error.h"
#include "nn/layers/option_text.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/shrink.h"

namespace flow::nn {

using internal::text_of;

Tensor Identity::forward(const Tensor& x) {
  return x;
}

Tensor Tanh::forward(const Tensor& x) {
  return tanh(x);
}

Tensor Sigmoid::forward(const Tensor& x) {
  return sigmoid(x);
}

Tensor LogSigmoid::forward(const Tensor& x) {
  return logsigmoid(x);
}

Tensor Hardsigmoid::forward(const Tensor& x) {
  return hardsigmoid(x);
}

GELU::GELU(GeluOptions options) : options_(std::move(options)) {
  set_extra_repr(str("approximate=", text_of(options_.approximate)));
}

Tensor GELU::forward(const Tensor& x) {
  return gelu(x, options_);
}

Tensor QuickGELU::forward(const Tensor& x) {
  return x * sigmoid(x * 1.702);
}

Tensor SiLU::forward(const Tensor& x) {
  return silu(x);
}

Tensor Mish::forward(const Tensor& x) {
  return mish(x);
}

Tensor Hardswish::forward(const Tensor& x) {
  return hardswish(x);
}

Softplus::Softplus(SoftplusOptions options) : options_(std::move(options)) {
  set_extra_repr(str("beta=", text_of(options_.beta), ", threshold=", text_of(options_.threshold)));
}

Tensor Softplus::forward(const Tensor& x) {
  return softplus(x, options_);
}

Tensor Softsign::forward(const Tensor& x) {
  return softsign(x);
}

Tensor Tanhshrink::forward(const Tensor& x) {
  return tanhshrink(x);
}

GLU::GLU(GLUOptions options) : options_(std::move(options)) {
  set_extra_repr(str("dim=", options_.dim));
}

Tensor GLU::forward(const Tensor& x) {
  return glu(x, options_.dim);
}

}  // namespace flow::nn
