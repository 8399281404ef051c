// Steps of the optimizers of ops/optimizer/adaptive_update.cpp for CPU and CUDA kernels (see
// ops/optimizer/update_steps.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/optimizer/update_steps.h"

#include "ops/kernel/isa_begin.h"

// Weights of a moving average: keep old + take new.
template <class C>
struct Average {
  C keep, take;

  FLOW_HOST_DEVICE explicit Average(double beta)
      : keep(static_cast<C>(beta)), take(static_cast<C>(1 - beta)) {}

  FLOW_HOST_DEVICE C operator()(C old, C now) const { return keep * old + take * now; }
};

// How the gradient is computed and the parameter decays: g = sign grad + coupled p, after p = keep
// p.
struct Direction {
  double sign;
  double coupled;
  double decay;  // of the parameter itself, times the rate

  Direction(bool maximize, double weight_decay, bool is_decoupled = false)
      : sign(maximize ? -1 : 1),
        coupled(is_decoupled ? 0 : weight_decay),
        decay(is_decoupled ? weight_decay : 0) {}

  template <class C>
  FLOW_HOST_DEVICE C gradient(C grad, C p) const {
    return with_decay(static_cast<C>(sign) * grad, static_cast<C>(coupled), p);
  }

  template <class C>
  FLOW_HOST_DEVICE C keep(double rate) const {
    return static_cast<C>(1 - rate * decay);
  }
};

struct AdamaxStep {
  static constexpr int kTensors = kAdamaxTensors;
  static constexpr uint32_t kMutates = 0b1101;
  AdamAttrs attrs;
  Direction direction;
  Number lr, step, beta1;

  explicit AdamaxStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<AdamAttrs>()),
        direction(attrs.maximize, attrs.weight_decay),
        lr(number_or(ctx, kTensors, attrs.lr)),
        step(number_or(ctx, kTensors + 1, static_cast<double>(attrs.step))),
        beta1(number_or(ctx, kTensors + 2, attrs.beta1)) {}

  template <class C>
  struct Numbers {
    Average<C> average;
    C keep2, eps, rate;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double first = beta1.get();
    return {Average<C>(first), static_cast<C>(attrs.beta2), static_cast<C>(attrs.eps),
            static_cast<C>(lr.get() / (1 - power(first, step.get())))};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    const C before = k.keep2 * v[3];
    const C now = std::abs(g) + k.eps;
    v[2] = k.average(v[2], g);
    v[3] = before > now || before != before ? before : now;  // NaN stays
    v[0] = v[0] - k.rate * (v[2] / v[3]);
  }
};

struct RAdamStep {
  static constexpr int kTensors = kRAdamTensors;
  static constexpr uint32_t kMutates = 0b1101;
  AdamAttrs attrs;
  Direction direction;
  Number lr, step, beta1;

  explicit RAdamStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<AdamAttrs>()),
        direction(attrs.maximize, attrs.weight_decay, attrs.is_decoupled),
        lr(number_or(ctx, kTensors, attrs.lr)),
        step(number_or(ctx, kTensors + 1, static_cast<double>(attrs.step))),
        beta1(number_or(ctx, kTensors + 2, attrs.beta1)) {}

  template <class C>
  struct Numbers {
    Average<C> first, second;
    C keep, eps, rate;
    bool is_rectified;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double count = step.get();
    const double own_beta1 = beta1.get();
    const double power2 = power(attrs.beta2, count);
    const double limit = 2 / (1 - attrs.beta2) - 1;
    const double length = limit - 2 * count * power2 / (1 - power2);
    const bool is_rectified = length > 5;
    const double squared =
        (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
    const double rectifier = is_rectified ? std::sqrt(squared * (1 - power2)) : 1;
    const double rate = lr.get() * rectifier / (1 - power(own_beta1, count));
    return {Average<C>(own_beta1),     Average<C>(attrs.beta2), direction.keep<C>(lr.get()),
            static_cast<C>(attrs.eps), static_cast<C>(rate),    is_rectified};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    v[2] = k.first(v[2], g);
    v[3] = k.second(v[3], g * g);
    const C change = k.is_rectified ? v[2] / (std::sqrt(v[3]) + k.eps) : v[2];
    v[0] = k.keep * v[0] - k.rate * change;
  }
};

struct NAdamStep {
  static constexpr int kTensors = kNAdamTensors;
  static constexpr uint32_t kMutates = 0b1101;
  NAdamAttrs attrs;
  Number grad_rate, average_rate, decay, correction2, beta1;

  explicit NAdamStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<NAdamAttrs>()),
        grad_rate(number_or(ctx, kTensors, attrs.grad_rate)),
        average_rate(number_or(ctx, kTensors + 1, attrs.average_rate)),
        decay(number_or(ctx, kTensors + 2, attrs.decay)),
        correction2(number_or(ctx, kTensors + 3, attrs.correction2)),
        beta1(number_or(ctx, kTensors + 4, attrs.beta1)) {}

  template <class C>
  struct Numbers {
    Average<C> first, second;
    C sign, coupled, keep, eps, grad_rate, average_rate, correction2;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double own_decay = decay.get();
    return {Average<C>(beta1.get()),
            Average<C>(attrs.beta2),
            static_cast<C>(attrs.maximize ? -1 : 1),
            static_cast<C>(attrs.is_decoupled ? 0 : own_decay),
            static_cast<C>(attrs.is_decoupled ? 1 - own_decay : 1),
            static_cast<C>(attrs.eps),
            static_cast<C>(grad_rate.get()),
            static_cast<C>(average_rate.get()),
            static_cast<C>(correction2.get())};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = with_decay(k.sign * v[1], k.coupled, v[0]);
    v[2] = k.first(v[2], g);
    v[3] = k.second(v[3], g * g);
    const C denominator = std::sqrt(v[3] / k.correction2) + k.eps;
    v[0] = k.keep * v[0] - (k.grad_rate * g + k.average_rate * v[2]) / denominator;
  }
};

template <bool kIsCentered, bool kHasMomentum>
struct RMSpropStep {
  static constexpr int kTensors = rmsprop_tensors(kIsCentered, kHasMomentum);
  static constexpr uint32_t kMutates = ((1U << kTensors) - 1) & ~0b10U;
  RMSpropAttrs attrs;
  Direction direction;
  Number lr, momentum;

  explicit RMSpropStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<RMSpropAttrs>()),
        direction(attrs.maximize, attrs.weight_decay),
        lr(number_or(ctx, kTensors, attrs.lr)),
        momentum{attrs.momentum} {
    if constexpr (kHasMomentum) momentum = number_or(ctx, kTensors + 1, attrs.momentum);
  }

  template <class C>
  struct Numbers {
    Average<C> average;
    C eps, momentum, lr;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    return {Average<C>(attrs.alpha), static_cast<C>(attrs.eps), static_cast<C>(momentum.get()),
            static_cast<C>(lr.get())};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    v[2] = k.average(v[2], g * g);
    C variance = v[2];
    if constexpr (kIsCentered) {
      v[3] = k.average(v[3], g);
      variance = v[2] - v[3] * v[3];
    }
    C change = g / (std::sqrt(variance) + k.eps);
    if constexpr (kHasMomentum) {
      change = k.momentum * v[kTensors - 1] + change;
      v[kTensors - 1] = change;
    }
    v[0] = v[0] - k.lr * change;
  }
};

struct AdagradStep {
  static constexpr int kTensors = kAdagradTensors;
  static constexpr uint32_t kMutates = 0b101;
  AdagradAttrs attrs;
  Direction direction;
  Number lr, step;

  explicit AdagradStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<AdagradAttrs>()),
        direction(attrs.maximize, attrs.weight_decay),
        lr(number_or(ctx, kTensors, attrs.lr)),
        step(number_or(ctx, kTensors + 1, static_cast<double>(attrs.step))) {}

  template <class C>
  struct Numbers {
    C eps, rate;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    return {static_cast<C>(attrs.eps),
            static_cast<C>(lr.get() / (1 + (step.get() - 1) * attrs.lr_decay))};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    v[2] = v[2] + g * g;
    v[0] = v[0] - k.rate * (g / (std::sqrt(v[2]) + k.eps));
  }
};

struct AdadeltaStep {
  static constexpr int kTensors = kAdadeltaTensors;
  static constexpr uint32_t kMutates = 0b1101;
  AdadeltaAttrs attrs;
  Direction direction;
  Number lr;

  explicit AdadeltaStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<AdadeltaAttrs>()),
        direction(attrs.maximize, attrs.weight_decay),
        lr(number_or(ctx, kTensors, attrs.lr)) {}

  template <class C>
  struct Numbers {
    Average<C> average;
    C eps, lr;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    return {Average<C>(attrs.rho), static_cast<C>(attrs.eps), static_cast<C>(lr.get())};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    v[2] = k.average(v[2], g * g);
    const C change = std::sqrt(v[3] + k.eps) / std::sqrt(v[2] + k.eps) * g;
    v[3] = k.average(v[3], change * change);
    v[0] = v[0] - k.lr * change;
  }
};

// The change that LAMB would make to the parameter at rate 1.
struct LambDirectionStep {
  static constexpr int kTensors = kLambDirectionTensors;
  static constexpr uint32_t kMutates = 0b11100;
  AdamAttrs attrs;
  Direction direction;
  Number step, beta1;

  explicit LambDirectionStep(const KernelContext& ctx)
      : attrs(ctx.attrs_as<AdamAttrs>()),
        direction(attrs.maximize, attrs.weight_decay, attrs.is_decoupled),
        step(number_or(ctx, kTensors, static_cast<double>(attrs.step))),
        beta1(number_or(ctx, kTensors + 1, attrs.beta1)) {}

  template <class C>
  struct Numbers {
    Average<C> first, second;
    C eps, decay, correction1, scale2;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double count = step.get();
    const double own_beta1 = beta1.get();
    return {Average<C>(own_beta1),
            Average<C>(attrs.beta2),
            static_cast<C>(attrs.eps),
            static_cast<C>(direction.decay),
            static_cast<C>(1 - power(own_beta1, count)),
            static_cast<C>(std::sqrt(1 - power(attrs.beta2, count)))};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = direction.gradient(v[1], v[0]);
    v[2] = k.first(v[2], g);
    v[3] = k.second(v[3], g * g);
    const C denominator = std::sqrt(v[3]) / k.scale2 + k.eps;
    v[4] = v[2] / k.correction1 / denominator + k.decay * v[0];
  }
};

struct LambStep {
  static constexpr int kTensors = kLambTensors;
  static constexpr uint32_t kMutates = 0b1;
  Number length, change, lr;

  explicit LambStep(const KernelContext& ctx)
      : length(number_or(ctx, kTensors, 0)),
        change(number_or(ctx, kTensors + 1, 0)),
        lr(number_or(ctx, kTensors + 2, ctx.attrs_as<AdamAttrs>().lr)) {}

  template <class C>
  struct Numbers {
    C rate;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double own = length.get();
    const double step = change.get();
    return {static_cast<C>(lr.get() * (own > 0 && step > 0 ? own / step : 1))};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    v[0] = v[0] - k.rate * v[1];
  }
};

#include "ops/kernel/isa_end.h"
