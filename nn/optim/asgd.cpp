#include "nn/optim/asgd.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"

namespace flow::optim {

namespace {
// Positions in number_names().
enum Number : uint8_t { kEta, kMu, kStepEta, kStepMu };
}  // namespace

void check_options(const ASGDOptions& o) {
  if (o.lr >= 0 && o.lambd >= 0 && o.alpha >= 0 && o.weight_decay >= 0) return;
  throw InvalidArgument(
      str("[ASGD] lr, lambd, alpha and weight_decay must not be negative; received ", o.lr, ", ",
          o.lambd, ", ", o.alpha, ", ", o.weight_decay));
}

void ASGD::advance(size_t number, ParamState& state) const {
  const ASGDOptions& o = options_of(number);
  const auto t = static_cast<double>(state.step);
  state.numbers[kStepEta] = state.step == 1 ? o.lr : state.numbers[kEta];
  state.numbers[kStepMu] = state.step == 1 ? 1 : state.numbers[kMu];
  state.numbers[kEta] = o.lr / std::pow(1 + o.lambd * o.lr * t, o.alpha);
  state.numbers[kMu] = 1 / std::max(1.0, t - o.t0);
}

void ASGD::write_rates(size_t /*number*/, const ParamState& state, std::span<double> rates) const {
  rates[0] = state.numbers[kStepEta];
  rates[1] = state.numbers[kStepMu];
}

void ASGD::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const ASGDOptions& o = options_of(number);
  const Tensor& average = buffer(state, 0, parameter);
  Tensor g = o.maximize ? neg(grad) : grad;
  if (o.weight_decay != 0) g = g + parameter * o.weight_decay;
  if (state.rate(0).defined()) {
    const Tensor eta = state.rate(0), mu = state.rate(1);
    parameter.mul_(1 - eta * o.lambd);
    parameter.sub_(g * eta);
    average.add_((parameter - average) * mu);
    return;
  }
  const double eta = state.numbers[kStepEta], mu = state.numbers[kStepMu];
  parameter.mul_(1 - o.lambd * eta);
  parameter.sub_(g * eta);
  if (mu == 1) {
    average.copy_(parameter);
  } else {
    average.add_((parameter - average) * mu);
  }
}

}  // namespace flow::optim
