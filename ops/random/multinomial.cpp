#include "ops/random/multinomial.h"

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/search.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/random/random.h"
#include "ops/reduce/scan.h"
#include "ops/shape/slice.h"

namespace flow {

Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options) {
  return ops::named("multinomial", [&]() -> Tensor {
    const Site site = p.site();
    if ((p->dim() != 1 && p->dim() != 2) || !is_floating(p->dtype()) || num_samples < 1 ||
        p->size(-1) == 0 || (!options.replacement && num_samples > p->size(-1))) {
      throw InvalidArgument(str("[multinomial] takes floating weights (C) or (N, C) and 1 to C "
                                "samples, or more with ",
                                "replacement; received ", p->meta(), ", ", num_samples),
                            site);
    }
    const Tensor weights = p->detach();
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
    TensorOptions layout = options_like(weights);
    if (!layout.sbp.empty()) layout.sbp = NdSbp::broadcast(layout.sbp.size());
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
