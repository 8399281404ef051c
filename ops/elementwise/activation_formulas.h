// The scalar formulas of ops/elementwise/activation.h and of their gradients: the reference. They
// take and return the type a kernel computes in (float for the 16-bit types).
#pragma once

#include <cmath>

#include "core/host_device.h"
#include "ops/elementwise/activation_op.h"

namespace flow::ops {

struct ScaledElu {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const ScaledEluAttrs*>(attrs);
    const C scale = static_cast<C>(a.scale);
    const C below = static_cast<C>(a.scale * a.alpha);
    const C rate = static_cast<C>(a.rate);
    return [=](C x) { return x > C{0} ? scale * x : below * std::expm1(rate * x); };
  }
};

struct ScaledEluGrad {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const ScaledEluAttrs*>(attrs);
    const C scale = static_cast<C>(a.scale);
    const C below = static_cast<C>(a.scale * a.alpha * a.rate);
    const C rate = static_cast<C>(a.rate);
    return [=](C dy, C x) { return x > C{0} ? dy * scale : dy * (below * std::exp(rate * x)); };
  }
};

struct Mish {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x * std::tanh(std::log1p(std::exp(x)));
  }
};

// tanh(u) + x (1 - tanh(u)^2) sigmoid(x) with u = log(1 + exp(x)); 1 in double from 20 on
struct MishGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    if (x > T{20}) return dy;
    const T t = std::tanh(std::log1p(std::exp(x)));
    return dy * (t + x * (1 - t * t) / (1 + std::exp(-x)));
  }
};

template <class T>
FLOW_HOST_DEVICE T relu6_of(T x) {
  const T positive = x < T{0} ? T{0} : x;
  return positive > T{6} ? T{6} : positive;
}

struct Hardswish {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x * relu6_of(x + 3) / 6;
  }
};

struct HardswishGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    if (x <= T{-3}) return T{0};
    return x >= T{3} ? dy : dy * (x / 3 + T(0.5));
  }
};

struct Hardsigmoid {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return relu6_of(x + 3) / 6;
  }
};

// PyTorch's sixth is of float32 in float64 too; its gradients are met to the last digits.
struct HardsigmoidGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    return x > T{-3} && x < T{3} ? dy * (1.0F / 6.0F) : T{0};
  }
};

struct Hardtanh {
  template <class C>
  static auto make(const void* attrs) {
    const C low = static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->min_val);
    const C high = static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->max_val);
    return [low, high](C x) {
      const C raised = x < low ? low : x;
      return raised > high ? high : raised;
    };
  }
};

struct HardtanhGrad {
  template <class C>
  static auto make(const void* attrs) {
    const C low = static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->min_val);
    const C high = static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->max_val);
    return [low, high](C dy, C x) { return x <= low || x >= high ? C{0} : dy; };
  }
};

struct Softsign {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return x / (1 + std::abs(x));
  }
};

// Two divisions do not overflow before dy does.
struct SoftsignGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T size = 1 + std::abs(x);
    return dy / size / size;
  }
};

struct Logsigmoid {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return (x > T{0} ? T{0} : x) - std::log1p(std::exp(-std::abs(x)));
  }
};

struct LogsigmoidGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    return dy / (1 + std::exp(x));
  }
};

struct Prelu {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x, T weight) {
    return x > T{0} ? x : weight * x;
  }
};

}  // namespace flow::ops
