#include "nn/optim/rprop.h"

#include "core/error.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"

namespace flow::optim {

void check_options(const RpropOptions& o) {
  const auto [down, up] = o.etas;
  if (o.lr >= 0 && down > 0 && down < 1 && up > 1 && o.step_sizes.first <= o.step_sizes.second) {
    return;
  }
  throw InvalidArgument(
      str("[Rprop] lr must not be negative, 0 < etas.first < 1 < etas.second, and step_sizes must "
          "be in order; received ",
          o.lr, ", (", down, ", ", up, "), (", o.step_sizes.first, ", ", o.step_sizes.second, ")"));
}

void Rprop::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const RpropOptions& o = options_of(number);
  const Tensor& before = buffer(state, 0, parameter);
  const Tensor& size = buffer(state, 1, parameter);
  // The sizes begin as the rate of the first step, which a compiled step learns when it runs.
  Tensor size_before = size;
  if (state.rate(0).defined())
    size_before = where(state.rate(1) == 1, state.rate(0), size);
  else if (state.step == 1)
    size.fill_(o.lr);
  const Tensor g = o.maximize ? neg(grad) : grad;
  const Tensor agreement = g * before;
  const Tensor turned = agreement < 0;
  const Tensor grown = where(agreement > 0, size_before * o.etas.second, size_before);
  size.copy_(clamp(where(turned, size_before * o.etas.first, grown),
                   {.min = o.step_sizes.first, .max = o.step_sizes.second}));
  before.copy_(masked_fill(g, turned, 0));
  parameter.sub_(sign(before) * size);
}

}  // namespace flow::optim
