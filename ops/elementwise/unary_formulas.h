// Formulas of the functions of ops/elementwise/unary.h that have attrs, and of the fused gradients.
// CPU and CUDA kernels share them; on the CPU they are the reference. They take and return the type
// that a kernel computes in, which is float for the 16-bit types.
#pragma once

#include <cmath>
#include <numbers>

#include "core/device/host_device.h"
#include "ops/elementwise/unary_op.h"
#include "ops/elementwise/unary_rows.h"

namespace flow::ops {

// ---- with attrs: f(x) and, for the fused gradient, f(dy, x)

template <class C>
struct LeakyRelu {
  C slope;

  explicit LeakyRelu(const void* attrs)
      : slope(static_cast<C>(static_cast<const LeakyReluAttrs*>(attrs)->negative_slope)) {}

  FLOW_HOST_DEVICE C operator()(C x) const { return x > C{0} ? x : slope * x; }

  FLOW_HOST_DEVICE C operator()(C dy, C x) const { return x > C{0} ? dy : slope * dy; }
};

template <class C>
struct Elu {
  C alpha;

  explicit Elu(const void* attrs)
      : alpha(static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha)) {}

  FLOW_HOST_DEVICE C operator()(C x) const { return x > C{0} ? x : alpha * std::expm1(x); }

  FLOW_HOST_DEVICE C operator()(C dy, C x) const {
    return x > C{0} ? dy : dy * (alpha * std::exp(x));
  }
};

template <class C>
struct Softplus {
  C beta, threshold;

  explicit Softplus(const void* attrs)
      : beta(static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->beta)),
        threshold(static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->threshold)) {}

  FLOW_HOST_DEVICE C operator()(C x) const {
    return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
  }

  FLOW_HOST_DEVICE C operator()(C dy, C x) const {
    return beta * x > threshold ? dy : dy * Sigmoid::apply(beta * x);
  }
};

// ---- fused gradients of (dy, x) or (dy, y)

struct ReluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return y <= T{0} ? T{0} : dy;  // NaN lets dy through, as PyTorch's threshold does
  }
};

struct TanhGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return dy * (1 - y * y);
  }
};

struct SigmoidGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T y) {
    return dy * (y * (1 - y));
  }
};

struct GeluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T density = std::exp(x * x / -2) * T(kNormalPeak);
    return dy * (normal_cdf(x) + x * density);
  }
};

// s + x s (1 - s) v' with s = sigmoid(v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3)
struct GeluTanhGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    constexpr T kScale = T(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    const T s = Sigmoid::apply(2 * gelu_tanh_argument(x));
    const T slope = kScale * (1 + 3 * T(0.044715) * x * x);
    return dy * (s + x * (s * (1 - s) * slope));
  }
};

struct SiluGrad {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T dy, T x) {
    const T s = Sigmoid::apply(x);
    return dy * (s * (1 + x * (1 - s)));
  }
};

}  // namespace flow::ops
