#include "ops/elementwise/trigonometry.h"

#include "ops/elementwise/row_calls.h"

namespace flow {

// clang-format off
Tensor tan(const TensorArg& x) { return ops::run<ops::Tan>(x); }
Tensor asin(const TensorArg& x) { return ops::run<ops::Asin>(x); }
Tensor acos(const TensorArg& x) { return ops::run<ops::Acos>(x); }
Tensor atan(const TensorArg& x) { return ops::run<ops::Atan>(x); }
Tensor sinh(const TensorArg& x) { return ops::run<ops::Sinh>(x); }
Tensor cosh(const TensorArg& x) { return ops::run<ops::Cosh>(x); }
Tensor asinh(const TensorArg& x) { return ops::run<ops::Asinh>(x); }
Tensor acosh(const TensorArg& x) { return ops::run<ops::Acosh>(x); }
Tensor atanh(const TensorArg& x) { return ops::run<ops::Atanh>(x); }

// clang-format on

Tensor atan2(const TensorArg& y, const TensorArg& x) {
  return ops::run<ops::Atan2>(y, x);
}

Tensor PointwiseMethods::tan(Site site) const {
  return flow::tan(TensorArg(self(), site));
}

Tensor PointwiseMethods::asin(Site site) const {
  return flow::asin(TensorArg(self(), site));
}

Tensor PointwiseMethods::acos(Site site) const {
  return flow::acos(TensorArg(self(), site));
}

Tensor PointwiseMethods::atan(Site site) const {
  return flow::atan(TensorArg(self(), site));
}

Tensor PointwiseMethods::sinh(Site site) const {
  return flow::sinh(TensorArg(self(), site));
}

Tensor PointwiseMethods::cosh(Site site) const {
  return flow::cosh(TensorArg(self(), site));
}

Tensor PointwiseMethods::asinh(Site site) const {
  return flow::asinh(TensorArg(self(), site));
}

Tensor PointwiseMethods::acosh(Site site) const {
  return flow::acosh(TensorArg(self(), site));
}

Tensor PointwiseMethods::atanh(Site site) const {
  return flow::atanh(TensorArg(self(), site));
}

Tensor PointwiseMethods::atan2(const TensorArg& other) const {
  return flow::atan2(TensorArg(self(), other.site()), other);
}

}  // namespace flow
