// Formulas of the functions of ops/elementwise/activation.h that have attrs or two inputs, and of
// the fused gradients. CPU and CUDA kernels share them; on the CPU they are the reference. They
// take and return the type that a kernel computes in, which is float for the 16-bit types.
#pragma once

#include <cmath>

#include "core/device/host_device.h"
#include "ops/elementwise/activation_op.h"

namespace flow::ops {

template <class C>
struct ScaledElu {
  C scale, below, rate;

  explicit ScaledElu(const void* attrs) : ScaledElu(*static_cast<const ScaledEluAttrs*>(attrs)) {}

  explicit ScaledElu(const ScaledEluAttrs& a)
      : scale(static_cast<C>(a.scale)),
        below(static_cast<C>(a.scale * a.alpha)),
        rate(static_cast<C>(a.rate)) {}

  FLOW_HOST_DEVICE C operator()(C x) const {
    return x > C{0} ? scale * x : below * std::expm1(rate * x);
  }
};

template <class C>
struct ScaledEluGrad {
  C scale, below, rate;

  explicit ScaledEluGrad(const void* attrs)
      : ScaledEluGrad(*static_cast<const ScaledEluAttrs*>(attrs)) {}

  explicit ScaledEluGrad(const ScaledEluAttrs& a)
      : scale(static_cast<C>(a.scale)),
        below(static_cast<C>(a.scale * a.alpha * a.rate)),
        rate(static_cast<C>(a.rate)) {}

  FLOW_HOST_DEVICE C operator()(C dy, C x) const {
    return x > C{0} ? dy * scale : dy * (below * std::exp(rate * x));
  }
};

// f(x), and f(dy, x) for the fused gradient.
template <class C>
struct Hardtanh {
  C low, high;

  explicit Hardtanh(const void* attrs)
      : low(static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->min_val)),
        high(static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->max_val)) {}

  FLOW_HOST_DEVICE C operator()(C x) const {
    const C raised = x < low ? low : x;
    return raised > high ? high : raised;
  }

  FLOW_HOST_DEVICE C operator()(C dy, C x) const { return x <= low || x >= high ? C{0} : dy; }
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

struct HardswishGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    if (x <= T{-3}) return T{0};
    return x >= T{3} ? dy : dy * (x / 3 + T(0.5));
  }
};

// PyTorch's sixth is a float32 number in float64 too; this makes the gradients equal to the last
// digits.
struct HardsigmoidGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    return x > T{-3} && x < T{3} ? dy * (1.0F / 6.0F) : T{0};
  }
};

// Two divisions do not overflow unless dy does.
struct SoftsignGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T size = 1 + std::abs(x);
    return dy / size / size;
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
