#include "ops/ternary.h"

#include <cmath>

#include "core/error.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace flow {

namespace {

void check_quotient(const Tensor& a, const Tensor& b, Site site) {
  if (is_floating(a.dtype()) || is_floating(b.dtype())) return;
  throw InvalidArgument(str("[addcdiv] divides floating tensors; received ", a.dtype(), " and ",
                            b.dtype(), "; cast one"),
                        site);
}

}  // namespace

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  const Tensor product = mul({a, x.site()}, b);
  return add(x, {product, x.site()}, {.alpha = options.value});
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  check_quotient(a, b, x.site());
  const Tensor quotient = div({a, x.site()}, b);
  return add(x, {quotient, x.site()}, {.alpha = options.value});
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  const Site site = start.site();
  const Tensor distance = sub({end, site}, start);
  const double w = weight.to<double>();
  if (std::abs(w) < 0.5) return add(start, {distance, site}, {.alpha = w});
  return sub({end, site}, {distance, site}, {.alpha = 1 - w});
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Site site = start.site();
  const Tensor distance = sub({end, site}, start);
  const Tensor near_start = add(start, mul({weight, site}, distance));
  const Tensor near_end = sub({end, site}, mul({distance, site}, 1 - weight));
  return where({lt(abs({weight, site}), 0.5), site}, near_start, near_end);
}

const Tensor& addcmul_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  const Tensor product = mul({a, x.site()}, b);
  return x->add_({product, x.site()}, {.alpha = options.value});
}

const Tensor& addcdiv_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  check_quotient(a, b, x.site());
  const Tensor quotient = div({a, x.site()}, b);
  return x->add_({quotient, x.site()}, {.alpha = options.value});
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  return start->copy_({lerp(start, end, weight), start.site()});
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  return start->copy_({lerp(start, end, weight), start.site()});
}

}  // namespace flow
