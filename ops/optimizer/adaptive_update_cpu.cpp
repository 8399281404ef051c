// Kernels of ops/optimizer/adaptive_update.cpp: one pass over a parameter and its state.
#include <cmath>

#include "ops/optimizer/update_loops.h"
#include "ops/optimizer/update_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

// How a gradient is directed and a parameter decays: g = sign grad + coupled p, after p = keep p.
template <class C>
struct Direction {
  C sign, coupled, keep;

  Direction(bool maximize, double weight_decay, bool is_decoupled = false, double lr = 0)
      : sign(maximize ? C{-1} : C{1}),
        coupled(static_cast<C>(is_decoupled ? 0 : weight_decay)),
        keep(static_cast<C>(is_decoupled ? 1 - lr * weight_decay : 1)) {}
};

// Weights of a moving average: keep old + take new.
template <class C>
struct Average {
  C keep, take;

  explicit Average(double beta) : keep(static_cast<C>(beta)), take(static_cast<C>(1 - beta)) {}

  C operator()(C old, C now) const { return keep * old + take * now; }
};

struct AdamaxStep {
  static constexpr int kTensors = kAdamaxTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> average;
    C keep2, eps, rate;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<AdamAttrs>()) {}

    Numbers(const KernelContext& ctx, const AdamAttrs& attrs)
        : direction(attrs.maximize, attrs.weight_decay),
          average(attrs.beta1),
          keep2(static_cast<C>(attrs.beta2)),
          eps(static_cast<C>(attrs.eps)) {
      const double step = number_or(ctx, kTensors + 1, static_cast<double>(attrs.step));
      rate = static_cast<C>(number_or(ctx, kTensors, attrs.lr) / (1 - std::pow(attrs.beta1, step)));
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), largest = s.in(3);
    const Writer<T> new_param = s.out(0, 0), new_average = s.out(1, 2), new_largest = s.out(2, 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto m = k.average(average[i], g);
      const auto before = k.keep2 * largest[i], now = std::abs(g) + k.eps;
      const auto u = before > now || before != before ? before : now;  // NaN stays
      new_average.set(i, m);
      new_largest.set(i, u);
      new_param.set(i, p - k.rate * (m / u));
    }
  }
};

struct RAdamStep {
  static constexpr int kTensors = kRAdamTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> first, second;
    C eps, rate;
    bool is_rectified;

    explicit Numbers(const KernelContext& ctx)
        : Numbers(ctx, ctx.attrs_as<AdamAttrs>(),
                  number_or(ctx, kTensors, ctx.attrs_as<AdamAttrs>().lr)) {}

    Numbers(const KernelContext& ctx, const AdamAttrs& attrs, double lr)
        : direction(attrs.maximize, attrs.weight_decay, attrs.is_decoupled, lr),
          first(attrs.beta1),
          second(attrs.beta2),
          eps(static_cast<C>(attrs.eps)) {
      const double step = number_or(ctx, kTensors + 1, static_cast<double>(attrs.step));
      const double power2 = std::pow(attrs.beta2, step);
      const double limit = 2 / (1 - attrs.beta2) - 1;
      const double length = limit - 2 * step * power2 / (1 - power2);
      is_rectified = length > 5;
      const double squared =
          (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
      const double rectifier = is_rectified ? std::sqrt(squared * (1 - power2)) : 1;
      rate = static_cast<C>(lr * rectifier / (1 - std::pow(attrs.beta1, step)));
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), square = s.in(3);
    const Writer<T> new_param = s.out(0, 0), new_average = s.out(1, 2), new_square = s.out(2, 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto m = k.first(average[i], g);
      const auto v = k.second(square[i], g * g);
      const auto change = k.is_rectified ? m / (std::sqrt(v) + k.eps) : m;
      new_average.set(i, m);
      new_square.set(i, v);
      new_param.set(i, k.direction.keep * p - k.rate * change);
    }
  }
};

struct NAdamStep {
  static constexpr int kTensors = kNAdamTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> first, second;
    C eps, grad_rate, average_rate, correction2;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<NAdamAttrs>()) {}

    Numbers(const KernelContext& ctx, const NAdamAttrs& attrs)
        : direction(attrs.maximize, number_or(ctx, kTensors + 2, attrs.decay), attrs.is_decoupled,
                    1),
          first(attrs.beta1),
          second(attrs.beta2),
          eps(static_cast<C>(attrs.eps)),
          grad_rate(static_cast<C>(number_or(ctx, kTensors, attrs.grad_rate))),
          average_rate(static_cast<C>(number_or(ctx, kTensors + 1, attrs.average_rate))),
          correction2(static_cast<C>(number_or(ctx, kTensors + 3, attrs.correction2))) {}
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), square = s.in(3);
    const Writer<T> new_param = s.out(0, 0), new_average = s.out(1, 2), new_square = s.out(2, 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto m = k.first(average[i], g);
      const auto v = k.second(square[i], g * g);
      const auto denominator = std::sqrt(v / k.correction2) + k.eps;
      new_average.set(i, m);
      new_square.set(i, v);
      new_param.set(i, k.direction.keep * p - (k.grad_rate * g + k.average_rate * m) / denominator);
    }
  }
};

template <bool kIsCentered, bool kHasMomentum>
struct RMSpropStep {
  static constexpr int kTensors = rmsprop_tensors(kIsCentered, kHasMomentum);

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> average;
    C eps, momentum, lr;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<RMSpropAttrs>()) {}

    Numbers(const KernelContext& ctx, const RMSpropAttrs& attrs)
        : direction(attrs.maximize, attrs.weight_decay),
          average(attrs.alpha),
          eps(static_cast<C>(attrs.eps)),
          momentum(static_cast<C>(attrs.momentum)),
          lr(static_cast<C>(number_or(ctx, kTensors, attrs.lr))) {}
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    // Unused ones stand for the square average.
    constexpr int kAverage = kIsCentered ? 3 : 2, kBuffer = kHasMomentum ? kTensors - 1 : 2;
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), square = s.in(2);
    const Reader<T> average = s.in(kAverage), buffer = s.in(kBuffer);
    const Writer<T> new_param = s.out(0, 0), new_square = s.out(1, 2);
    const Writer<T> new_average = s.out(kAverage - 1, kAverage);
    const Writer<T> new_buffer = s.out(kBuffer - 1, kBuffer);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto v = k.average(square[i], g * g);
      auto variance = v;
      if constexpr (kIsCentered) {
        const auto a = k.average(average[i], g);
        new_average.set(i, a);
        variance = v - a * a;
      }
      auto change = g / (std::sqrt(variance) + k.eps);
      if constexpr (kHasMomentum) {
        change = k.momentum * buffer[i] + change;
        new_buffer.set(i, change);
      }
      new_square.set(i, v);
      new_param.set(i, p - k.lr * change);
    }
  }
};

struct AdagradStep {
  static constexpr int kTensors = kAdagradTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    C eps, rate;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<AdagradAttrs>()) {}

    Numbers(const KernelContext& ctx, const AdagradAttrs& attrs)
        : direction(attrs.maximize, attrs.weight_decay), eps(static_cast<C>(attrs.eps)) {
      const double step = number_or(ctx, kTensors + 1, static_cast<double>(attrs.step));
      rate = static_cast<C>(number_or(ctx, kTensors, attrs.lr) / (1 + (step - 1) * attrs.lr_decay));
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), sum = s.in(2);
    const Writer<T> new_param = s.out(0, 0), new_sum = s.out(1, 2);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto total = sum[i] + g * g;
      new_sum.set(i, total);
      new_param.set(i, p - k.rate * (g / (std::sqrt(total) + k.eps)));
    }
  }
};

struct AdadeltaStep {
  static constexpr int kTensors = kAdadeltaTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> average;
    C eps, lr;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<AdadeltaAttrs>()) {}

    Numbers(const KernelContext& ctx, const AdadeltaAttrs& attrs)
        : direction(attrs.maximize, attrs.weight_decay),
          average(attrs.rho),
          eps(static_cast<C>(attrs.eps)),
          lr(static_cast<C>(number_or(ctx, kTensors, attrs.lr))) {}
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), square = s.in(2), change_square = s.in(3);
    const Writer<T> new_param = s.out(0, 0), new_square = s.out(1, 2);
    const Writer<T> new_change_square = s.out(2, 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto v = k.average(square[i], g * g);
      const auto a = change_square[i];
      const auto change = std::sqrt(a + k.eps) / std::sqrt(v + k.eps) * g;
      new_square.set(i, v);
      new_change_square.set(i, k.average(a, change * change));
      new_param.set(i, p - k.lr * change);
    }
  }
};

// What LAMB would add to the parameter at rate 1.
struct LambDirectionStep {
  static constexpr int kTensors = kLambDirectionTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    Direction<C> direction;
    Average<C> first, second;
    C eps, decay, correction1, scale2;

    explicit Numbers(const KernelContext& ctx) : Numbers(ctx, ctx.attrs_as<AdamAttrs>()) {}

    Numbers(const KernelContext& ctx, const AdamAttrs& attrs)
        : direction(attrs.maximize, attrs.weight_decay, attrs.is_decoupled),
          first(attrs.beta1),
          second(attrs.beta2),
          eps(static_cast<C>(attrs.eps)),
          decay(static_cast<C>(attrs.is_decoupled ? attrs.weight_decay : 0)) {
      const double step = number_or(ctx, kTensors, static_cast<double>(attrs.step));
      correction1 = static_cast<C>(1 - std::pow(attrs.beta1, step));
      scale2 = static_cast<C>(std::sqrt(1 - std::pow(attrs.beta2, step)));
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), square = s.in(3);
    const Writer<T> new_average = s.out(0, 2), new_square = s.out(1, 3), direction = s.out(2, 4);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.direction.sign * grad[i] + k.direction.coupled * p;
      const auto m = k.first(average[i], g);
      const auto v = k.second(square[i], g * g);
      const auto denominator = std::sqrt(v) / k.scale2 + k.eps;
      new_average.set(i, m);
      new_square.set(i, v);
      direction.set(i, m / k.correction1 / denominator + k.decay * p);
    }
  }
};

struct LambStep {
  static constexpr int kTensors = kLambTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C rate;

    explicit Numbers(const KernelContext& ctx) {
      const double length = number_or(ctx, kTensors, 0), change = number_or(ctx, kTensors + 1, 0);
      const double ratio = length > 0 && change > 0 ? length / change : 1;
      rate = static_cast<C>(number_or(ctx, kTensors + 2, ctx.attrs_as<AdamAttrs>().lr) * ratio);
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), direction = s.in(1);
    const Writer<T> new_param = s.out(0, 0);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      new_param.set(i, param[i] - k.rate * direction[i]);
  }
};

}  // namespace

void register_adaptive_update_cpu(KernelTable& table) {
  add_update<AdamaxStep>(table, kAdamaxUpdate);
  add_update<RAdamStep>(table, kRAdamUpdate);
  add_update<NAdamStep>(table, kNAdamUpdate);
  add_update<RMSpropStep<false, false>>(table, kRMSpropUpdate);
  add_update<RMSpropStep<true, false>>(table, kRMSpropCenteredUpdate);
  add_update<RMSpropStep<false, true>>(table, kRMSpropMomentumUpdate);
  add_update<RMSpropStep<true, true>>(table, kRMSpropCenteredMomentumUpdate);
  add_update<AdagradStep>(table, kAdagradUpdate);
  add_update<AdadeltaStep>(table, kAdadeltaUpdate);
  add_update<LambDirectionStep>(table, kLambDirection);
  add_update<LambStep>(table, kLambUpdate);
}

#include "ops/kernel/isa_end.h"
