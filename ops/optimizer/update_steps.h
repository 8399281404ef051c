// Steps of SGD and Adam, element by element, for CPU and CUDA kernels:
//
//   struct Step {
//     static constexpr int kTensors;        // inputs of the parameter's shape; numbers follow
//     static constexpr uint32_t kMutates;   // bit i: input i is written
//     // Steps that WithMaster takes also get the input of the first number.
//     explicit Step(const KernelContext& ctx);
//     template <class C> struct Numbers;    // what numbers<C>() makes, once a thread
//     template <class C> Numbers<C> numbers() const;
//     template <class C> void run(const Numbers<C>& k, C* v) const;  // v[i] is of input i
//   };
//
// C is the type that a kernel computes in: float for the 16-bit types. WithMaster makes of such a
// step the one of a 16-bit parameter with a master. All names but the types of elements are in
// flow::ops::isa_*, so that loops get the instructions of their file; CUDA files use isa_baseline.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "core/kernel.h"
#include "ops/optimizer/update_op.h"

namespace flow::ops {

// True if one of the inputs, Step::kMaster, is the parameter in float32.
template <class Step>
inline constexpr bool kHasMaster = requires {
  Step::kMaster;
};

// The type of input `kInput` where the parameter and its gradient are of type T.
template <class Step, class T, size_t kInput>
using UpdateElement = std::conditional_t<kHasMaster<Step> && (kInput > 1), float, T>;

}  // namespace flow::ops

#include "ops/kernel/isa_begin.h"

// A number of the call, or the tensor that was given instead of it.
struct Number {
  double value = 0;
  const float* in_float = nullptr;
  const double* in_double = nullptr;

  FLOW_HOST_DEVICE double get() const {
    return in_float != nullptr ? double{*in_float} : in_double != nullptr ? *in_double : value;
  }
};

inline Number number_or(const KernelContext& ctx, int i, double fallback) {
  Number number{fallback};
  if (!ctx.has_input(i)) return number;
  const TensorView& view = ctx.in(i);
  if (view.meta->dtype == DType::kFloat64) {
    number.in_double = view.as<double>();
  } else {
    number.in_float = view.as<float>();
  }
  return number;
}

// base^count, for the count of a step. On a device every block computes it before its first
// element, where squaring takes a fraction of the time of pow.
FLOW_HOST_DEVICE inline double power(double base, double count) {
#if defined(__CUDA_ARCH__)
  constexpr double kMostExact = 9007199254740992;  // 2^53
  if (count >= 0 && count <= kMostExact && count == std::floor(count)) {
    double result = 1;
    for (auto left = static_cast<uint64_t>(count); left != 0; left >>= 1) {
      if ((left & 1) != 0) result *= base;
      base *= base;
    }
    return result;
  }
#endif
  return std::pow(base, count);
}

// The gradient with weight decay. An infinite parameter without decay adds nothing, not NaN.
template <class C>
FLOW_HOST_DEVICE C with_decay(C gradient, C weight_decay, C parameter) {
  return weight_decay == 0 ? gradient : gradient + weight_decay * parameter;
}

struct SgdStep {
  static constexpr int kTensors = kSgdTensors;
  static constexpr uint32_t kMutates = 0b1;
  Number lr;
  double weight_decay, sign;

  explicit SgdStep(const KernelContext& ctx, int first_number = kTensors)
      : lr(number_or(ctx, first_number, 0)) {
    const auto& attrs = ctx.attrs_as<SgdAttrs>();
    lr.value = attrs.lr;
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
  }

  template <class C>
  struct Numbers {
    C lr, weight_decay, sign;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    return {static_cast<C>(lr.get()), static_cast<C>(weight_decay), static_cast<C>(sign)};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    v[0] = v[0] - k.lr * with_decay(k.sign * v[1], k.weight_decay, v[0]);
  }
};

struct SgdMomentumStep {
  static constexpr int kTensors = kSgdMomentumTensors;
  static constexpr uint32_t kMutates = 0b101;
  Number lr, momentum;
  double weight_decay, sign, damped;
  bool nesterov, is_first;

  explicit SgdMomentumStep(const KernelContext& ctx, int first_number = kTensors)
      : lr(number_or(ctx, first_number, 0)), momentum(number_or(ctx, first_number + 1, 0)) {
    const auto& attrs = ctx.attrs_as<SgdAttrs>();
    lr.value = attrs.lr;
    momentum.value = attrs.momentum;
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
    damped = 1 - attrs.dampening;
    nesterov = attrs.nesterov;
    is_first = attrs.is_first;
  }

  template <class C>
  struct Numbers {
    C lr, weight_decay, sign, momentum, damped;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    return {static_cast<C>(lr.get()), static_cast<C>(weight_decay), static_cast<C>(sign),
            static_cast<C>(momentum.get()), static_cast<C>(damped)};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = with_decay(k.sign * v[1], k.weight_decay, v[0]);
    const C b = is_first ? g : k.momentum * v[2] + k.damped * g;
    v[2] = b;
    v[0] = v[0] - k.lr * (nesterov ? g + k.momentum * b : b);
  }
};

template <bool kIsAmsgrad>
struct AdamStep {
  static constexpr int kTensors = kIsAmsgrad ? kAmsgradTensors : kAdamTensors;
  static constexpr uint32_t kMutates = kIsAmsgrad ? 0b11101 : 0b1101;
  Number lr, step, first;
  double weight_decay, sign, beta2, eps;
  bool is_decoupled;

  explicit AdamStep(const KernelContext& ctx, int first_number = kTensors)
      : lr(number_or(ctx, first_number, 0)),
        step(number_or(ctx, first_number + 1, 0)),
        first(number_or(ctx, first_number + 2, 0)) {
    const auto& attrs = ctx.attrs_as<AdamAttrs>();
    lr.value = attrs.lr;
    first.value = attrs.beta1;
    step.value = static_cast<double>(attrs.step);
    weight_decay = attrs.weight_decay;
    sign = attrs.maximize ? -1 : 1;
    beta2 = attrs.beta2;
    eps = attrs.eps;
    is_decoupled = attrs.is_decoupled;
  }

  template <class C>
  struct Numbers {
    C sign, decay, coupled, keep1, take1, keep2, take2, step_size, scale2, eps;
  };

  template <class C>
  FLOW_HOST_DEVICE Numbers<C> numbers() const {
    const double rate = lr.get();
    const double count = step.get();
    const double beta1 = first.get();
    return {static_cast<C>(sign),
            static_cast<C>(is_decoupled ? 1 - rate * weight_decay : 1.0),
            static_cast<C>(is_decoupled ? 0.0 : weight_decay),
            static_cast<C>(beta1),
            static_cast<C>(1 - beta1),
            static_cast<C>(beta2),
            static_cast<C>(1 - beta2),
            static_cast<C>(rate / (1 - power(beta1, count))),
            static_cast<C>(std::sqrt(1 - power(beta2, count))),
            static_cast<C>(eps)};
  }

  template <class C>
  FLOW_HOST_DEVICE void run(const Numbers<C>& k, C* v) const {
    const C g = with_decay(k.sign * v[1], k.coupled, v[0]);
    v[2] = k.keep1 * v[2] + k.take1 * g;
    v[3] = k.keep2 * v[3] + k.take2 * (g * g);
    C bound = v[3];
    if constexpr (kIsAmsgrad) {
      bound = v[4] > bound ? v[4] : bound;
      v[4] = bound;
    }
    v[0] = k.decay * v[0] - k.step_size * (v[2] / (std::sqrt(bound) / k.scale2 + k.eps));
  }
};

// The step of a 16-bit parameter whose float32 master is the last tensor, after the float32 state.
// round(x) is x as the parameter holds it. The master holds what rounding takes from the parameter;
// where the rounded master is not the parameter, somebody wrote the parameter after the last step
// (or the master is new), and the master begins at the parameter again.
template <class Step>
struct WithMaster : Step {
  static constexpr int kMaster = Step::kTensors;
  static constexpr int kTensors = Step::kTensors + 1;
  static constexpr uint32_t kMutates = Step::kMutates | 1U << kMaster;

  explicit WithMaster(const KernelContext& ctx) : Step(ctx, kTensors) {}

  template <class Round>
  FLOW_HOST_DEVICE void run(const typename Step::template Numbers<float>& k, float* v,
                            Round round) const {
    const bool is_current =
        std::bit_cast<uint32_t>(float{round(v[kMaster])}) == std::bit_cast<uint32_t>(v[0]);
    v[0] = is_current ? v[kMaster] : v[0];
    Step::run(k, v);
    v[kMaster] = v[0];
  }
};

#include "ops/kernel/isa_end.h"
