// Kernels of ops/optimizer/update.h: one pass; per element SGD reads 8 bytes of float and writes 4
// (12 and 8 with momentum), Adam reads 16 and writes 12.
#include <cmath>

#include "ops/optimizer/update_loops.h"
#include "ops/optimizer/update_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

struct SgdStep {
  static constexpr int kTensors = kSgdTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C lr, weight_decay, sign;

    explicit Numbers(const KernelContext& ctx) {
      const auto& attrs = ctx.attrs_as<SgdAttrs>();
      lr = static_cast<C>(number_or(ctx, kTensors, attrs.lr));
      weight_decay = static_cast<C>(attrs.weight_decay);
      sign = attrs.maximize ? C{-1} : C{1};
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& k, const S& s, int64_t n) {
    const Reader<T> param = s.in(0), grad = s.in(1);
    const Writer<T> new_param = s.out(0, 0);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      new_param.set(i, p - k.lr * (k.sign * grad[i] + k.weight_decay * p));
    }
  }
};

struct SgdMomentumStep {
  static constexpr int kTensors = kSgdMomentumTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C lr, weight_decay, sign, momentum, damped;
    bool nesterov, is_first;

    explicit Numbers(const KernelContext& ctx) {
      const auto& attrs = ctx.attrs_as<SgdAttrs>();
      lr = static_cast<C>(number_or(ctx, kTensors, attrs.lr));
      weight_decay = static_cast<C>(attrs.weight_decay);
      sign = attrs.maximize ? C{-1} : C{1};
      momentum = static_cast<C>(attrs.momentum);
      damped = static_cast<C>(1 - attrs.dampening);
      nesterov = attrs.nesterov;
      is_first = attrs.is_first;
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), buffer = s.in(2);
    const Writer<T> new_param = s.out(0, 0), new_buffer = s.out(1, 2);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.sign * grad[i] + k.weight_decay * p;
      const auto b = k.is_first ? g : k.momentum * buffer[i] + k.damped * g;
      new_buffer.set(i, b);
      new_param.set(i, p - k.lr * (k.nesterov ? g + k.momentum * b : b));
    }
  }
};

template <bool kIsAmsgrad>
struct AdamStep {
  static constexpr int kTensors = kIsAmsgrad ? kAmsgradTensors : kAdamTensors;

  template <class T>
  struct Numbers {
    using C = Compute<T>;
    C sign, decay, coupled, keep1, take1, keep2, take2, step_size, scale2, eps;

    explicit Numbers(const KernelContext& ctx) {
      const auto& attrs = ctx.attrs_as<AdamAttrs>();
      const double lr = number_or(ctx, kTensors, attrs.lr);
      const double step = number_or(ctx, kTensors + 1, static_cast<double>(attrs.step));
      sign = attrs.maximize ? C{-1} : C{1};
      decay = static_cast<C>(attrs.is_decoupled ? 1 - lr * attrs.weight_decay : 1);
      coupled = static_cast<C>(attrs.is_decoupled ? 0 : attrs.weight_decay);
      keep1 = static_cast<C>(attrs.beta1);
      take1 = static_cast<C>(1 - attrs.beta1);
      keep2 = static_cast<C>(attrs.beta2);
      take2 = static_cast<C>(1 - attrs.beta2);
      step_size = static_cast<C>(lr / (1 - std::pow(attrs.beta1, step)));
      scale2 = static_cast<C>(std::sqrt(1 - std::pow(attrs.beta2, step)));
      eps = static_cast<C>(attrs.eps);
    }
  };

  template <class T, class S>
  static void run(const Numbers<T>& numbers, const S& s, int64_t n) {
    const Numbers<T> k = numbers;
    const Reader<T> param = s.in(0), grad = s.in(1), average = s.in(2), square = s.in(3);
    const Reader<T> largest = s.in(kIsAmsgrad ? 4 : 3);
    const Writer<T> new_param = s.out(0, 0), new_average = s.out(1, 2), new_square = s.out(2, 3);
    const Writer<T> new_largest = s.out(kIsAmsgrad ? 3 : 2, kIsAmsgrad ? 4 : 3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto p = param[i];
      const auto g = k.sign * grad[i] + k.coupled * p;
      const auto m = k.keep1 * average[i] + k.take1 * g;
      const auto v = k.keep2 * square[i] + k.take2 * (g * g);
      auto bound = v;
      if constexpr (kIsAmsgrad) {
        const auto before = largest[i];
        bound = before > v ? before : v;
        new_largest.set(i, bound);
      }
      const auto denominator = std::sqrt(bound) / k.scale2 + k.eps;
      new_average.set(i, m);
      new_square.set(i, v);
      new_param.set(i, k.decay * p - k.step_size * (m / denominator));
    }
  }
};

}  // namespace

void register_update_cpu(KernelTable& table) {
  add_update<SgdStep>(table, kSgdUpdate);
  add_update<SgdMomentumStep>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>>(table, kAdamUpdate);
  add_update<AdamStep<true>>(table, kAmsgradUpdate);
}

#include "ops/kernel/isa_end.h"
