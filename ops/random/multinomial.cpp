#include "ops/random/multinomial.h"

#include <cmath>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/search.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/random/random.h"
#include "ops/random/random_op.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/slice.h"

namespace flow {

namespace {

// Collective for global weights.
void check_weights(const Tensor& weights, Site site) {
  const double least = min({weights, site}).item<double>(site);
  const double largest = max({weights, site}).item<double>(site);
  if (!(least >= 0) || !std::isfinite(largest)) {
    throw InvalidArgument(str("[multinomial] weights must be finite and not negative; received ",
                              weights.meta(), " with values from ", least, " to ", largest),
                          site);
  }
  if (min({sum({weights, site}, -1), site}).item<double>(site) > 0) return;
  throw InvalidArgument(str("[multinomial] each row needs a positive weight; received ",
                            weights.meta(), " with a row of zeros"),
                        site);
}

}  // namespace

Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options) {
  return ops::named("multinomial", p.site(), [&]() -> Tensor {
    const Site site = p.site();
    if ((p->dim() != 1 && p->dim() != 2) || !is_floating(p->dtype()) || num_samples < 1 ||
        p->size(-1) == 0 || (!options.replacement && num_samples > p->size(-1))) {
      throw InvalidArgument(str("[multinomial] takes floating weights (C) or (N, C) and 1 to C "
                                "samples, or more with ",
                                "replacement; received ", p->meta(), ", ", num_samples),
                            site);
    }
    const Tensor given = p->detach();
    const Tensor valid =
        ops::checked(given, ops::kCheckedWeights, site, [&] { check_weights(given, site); });
    // 16 bits can neither number thousands of classes nor hold the sums of their weights.
    const Tensor weights = ops::widened({valid, site});
    if (!options.replacement) {
      // The first arrivals of exponential clocks with these rates (Efraimidis and Spirakis 2006).
      const Tensor draws = clamp({rand_like({weights, site}), site}, {.min = 1.17549435e-38});
      const Tensor waiting = neg({log({draws, site}), site});
      return topk({div({weights, site}, waiting), site}, num_samples, {.dim = -1}).indices;
    }
    const Tensor sums = cumsum({weights, site}, -1);
    const Tensor total = narrow({sums, site}, -1, weights.size(-1) - 1, 1);
    Shape shape = weights.shape();
    shape[shape.size() - 1] = num_samples;
    const TensorOptions layout = ops::whole_like(weights);
    const Tensor level = mul({rand(shape, layout, site), site}, total);
    const Tensor place = searchsorted({sums, site}, {level, site}, {.right = true});
    return clamp({place, site}, {.max = weights.size(-1) - 1});
  });
}

Tensor IndexMethods::multinomial(int64_t num_samples, const MultinomialOptions& options,
                                 Site site) const {
  return flow::multinomial(TensorArg(self(), site), num_samples, options);
}

}  // namespace flow
