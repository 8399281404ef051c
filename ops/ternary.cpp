#include "ops/ternary.h"

#include <cmath>

#include "core/error.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace flow {

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  const Tensor product = mul({a, x.site()}, b);
  return add(x, {product, x.site()}, {.alpha = options.value});
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  if (!is_floating(a->dtype()) && !is_floating(b->dtype())) {
    throw InvalidArgument(str("[addcdiv] divides floating tensors; received ", a->dtype(), " and ",
                              b->dtype(), "; cast one"),
                          x.site());
  }
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

}  // namespace flow
