#include "ops/linear/similarity.h"

#include "core/error.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow {

Tensor normalize(const TensorArg& x, const NormalizeOptions& options) {
  return ops::named("normalize", x.site(), [&]() -> Tensor {
    const Tensor length = norm(x, {.p = options.p, .dim = options.dim, .keepdim = true});
    return div(x, {clamp({length, x.site()}, {.min = options.eps}), x.site()});
  });
}

Tensor cosine_similarity(const TensorArg& a, const TensorArg& b, const CosineOptions& options) {
  return ops::named("cosine_similarity", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    if (!(options.eps >= 0)) {
      throw InvalidArgument(
          str("[cosine_similarity] eps is ", options.eps, "; give 0 or a positive number"), site);
    }
    const DType dtype = promote(a->dtype(), b->dtype());  // both have dims after broadcasting
    const Shape shape = broadcast_shapes(a->shape(), b->shape(), "cosine_similarity");
    const NormalizeOptions unit{.dim = options.dim, .eps = options.eps};
    const auto promoted = [&](const TensorArg& x) {
      return ops::autocast({cast(x, dtype), site}, AutocastRule::kFloat32);
    };
    const auto direction = [&](const Tensor& x) {
      const Tensor wide = expand({ops::widened({x, site}), site}, shape);
      return normalize({wide, site}, unit);
    };
    const Tensor x = promoted(a), y = promoted(b);
    const Tensor products = mul({direction(x), site}, direction(y));
    return cast({sum({products, site}, options.dim), site}, x.dtype());
  });
}

Tensor pairwise_distance(const TensorArg& a, const TensorArg& b, const DistanceOptions& options) {
  return ops::named("pairwise_distance", a.site(), [&]() -> Tensor {
    const Tensor difference = add({sub(a, b), a.site()}, options.eps);
    return norm({difference, a.site()}, {.p = options.p, .dim = -1, .keepdim = options.keepdim});
  });
}

}  // namespace flow
