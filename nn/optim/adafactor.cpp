#include "nn/optim/adafactor.h"

#include <cmath>

#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/vector_algebra.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"

namespace flow::optim {

namespace {

Tensor rms(const Tensor& x) {
  return norm(x) / std::sqrt(static_cast<double>(x.numel()));
}

// A factor that changes from one step to the next: a number, or a scalar of a compiled step.
struct Rate {
  double number = 0;
  Tensor traced = {};

  Tensor times(const Tensor& x) const { return traced.defined() ? x * traced : x * number; }
};

struct StepRates {
  Rate decay_weight, largest, weight_decay;
};

StepRates rates_of(const AdafactorOptions& o, int64_t step, const Tensor& lr,
                   const Tensor& traced_step, DType dtype) {
  if (!lr.defined()) {
    const auto t = static_cast<double>(step);
    return {
        {std::pow(t, o.beta2_decay)}, {std::min(o.lr, 1 / std::sqrt(t))}, {o.lr * o.weight_decay}};
  }
  return {{.traced = cast(pow(traced_step, o.beta2_decay), dtype)},
          {.traced = cast(minimum(lr, rsqrt(traced_step)), dtype)},
          {.traced = cast(lr * o.weight_decay, dtype)}};
}

}  // namespace

void check_options(const AdafactorOptions& o) {
  if (o.lr < 0 || o.beta2_decay > 0 || o.eps.first.value_or(0) < 0 || o.eps.second < 0 || o.d < 1 ||
      o.weight_decay < 0) {
    throw InvalidArgument(
        str("[Adafactor] lr, eps and weight_decay must not be negative, beta2_decay must not be "
            "positive, and d must be at least 1; received lr ",
            o.lr, ", beta2_decay ", o.beta2_decay, ", eps ", o.eps.first.value_or(0), " and ",
            o.eps.second, ", d ", o.d, ", weight_decay ", o.weight_decay));
  }
}

Shape Adafactor::buffer_shape(size_t i, const Tensor& parameter) const {
  Shape shape = parameter.shape();
  if (i < 2 && shape.size() > 1) shape[shape.size() - (i == 0 ? 1 : 2)] = 1;
  return shape;
}

void Adafactor::update(const Tensor& parameter, const Tensor& grad, size_t number,
                       ParamState& state) {
  const AdafactorOptions& o = options_of(number);
  const Tensor g = o.maximize ? neg(grad) : grad;
  const double eps = o.eps.first.value_or(machine_epsilon(parameter.dtype()));
  const StepRates rates = rates_of(o, state.step, state.rate(0), state.rate(1), parameter.dtype());
  const auto move = [&](const Tensor& average, const Tensor& to) {
    average.add_(rates.decay_weight.times(to - average));
  };
  const Tensor rate = rates.largest.times(clamp_min(rms(parameter), o.eps.second));
  if (o.weight_decay != 0) {
    parameter.sub_(rates.weight_decay.times(parameter));
  }
  Tensor variance;
  if (parameter.dim() > 1) {
    const Tensor& rows = buffer(state, 0, parameter);
    const Tensor& columns = buffer(state, 1, parameter);
    const Tensor squares = square(g);
    move(rows, mean(squares, -1, {.keepdim = true}));
    move(columns, mean(squares, -2, {.keepdim = true}));
    variance = rows * columns / clamp_min(mean(rows, -2, {.keepdim = true}), eps);
  } else {
    variance = buffer(state, 2, parameter);
    move(variance, square(g));
  }
  const Tensor direction = rsqrt(clamp_min(variance, eps * eps)) * g;
  parameter.sub_(direction * (rate / clamp_min(rms(direction) / o.d, 1)));
}

}  // namespace flow::optim
