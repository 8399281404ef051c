// Bessel functions of orders 0 and 1, in double. CPU and CUDA kernels share them. Each is accurate
// to a few units in the last place of its largest value nearby.
//
// Close to 0 the power series is summed; far from 0, the asymptotic series of Hankel (NIST DLMF
// 10.17 and 10.40). In between, J and Y take Miller's backward recurrence with Neumann's series
// (Abramowitz and Stegun 1964, 9.1.46 and 9.1.88), and K takes its integral (DLMF 10.32.9) by the
// trapezoidal rule, whose error falls exponentially (Trefethen and Weideman 2014).
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "core/device/host_device.h"
#include "ops/elementwise/special/routine.h"

namespace flow::ops::special {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kTiny = 1e-18;  // a relative change that no double shows

// Where the functions take their asymptotic series.
inline constexpr double kFarModified = 30;
inline constexpr double kFarOscillating = 25;

// The sum of sign^k a_k(order) / x^k (DLMF 10.17.1), up to its least term.
FLOW_ROUTINE inline double hankel_sum(double order, double x, double sign) {
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 100; ++k) {
    const double odd = 2 * k - 1;
    const double next = term * sign * (4 * order * order - odd * odd) / (8 * k * x);
    if (!(std::abs(next) < std::abs(term))) break;
    term = next;
    sum += term;
    if (std::abs(term) < kTiny * std::abs(sum)) break;
  }
  return sum;
}

// ---- modified, I and K

// exp(-|x|) I(x) for x >= 0.
FLOW_ROUTINE inline double scaled_i(int order, double x) {
  if (x > kFarModified) {
    if (std::isinf(x)) return 0;
    return hankel_sum(order, x, -1) / std::sqrt(2 * std::numbers::pi * x);
  }
  const double y = x * x / 4;
  double term = order == 0 ? 1 : x / 2;
  double sum = term;
  for (int k = 1; term > kTiny * sum; ++k) {
    term *= y / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum * std::exp(-x);
}

FLOW_HOST_DEVICE inline double bessel_i0e(double x) {
  return scaled_i(0, std::abs(x));
}

FLOW_HOST_DEVICE inline double bessel_i1e(double x) {
  return std::copysign(1.0, x) * scaled_i(1, std::abs(x));
}

// The power of e is split, because it may overflow where the product does not.
FLOW_ROUTINE inline double bessel_i0(double x) {
  if (std::isinf(x)) return kInfinity;
  const double root = std::exp(std::abs(x) / 2);
  return root * bessel_i0e(x) * root;
}

FLOW_ROUTINE inline double bessel_i1(double x) {
  if (std::isinf(x)) return x;
  const double root = std::exp(std::abs(x) / 2);
  return root * bessel_i1e(x) * root;
}

// exp(x) K(x) = ∫ exp(-x (cosh t - 1)) cosh(order t) dt over t > 0, for any order and x from 0.5 to
// kFarModified.
FLOW_HOST_DEVICE inline double scaled_k_integral(double order, double x) {
  constexpr double kStep = 0.125;
  double sum = 0.5;
  for (int j = 1; j < 100; ++j) {
    const double t = j * kStep;
    const double half = std::sinh(t / 2);
    const double exponent = 2 * x * half * half;
    sum += std::exp(-exponent) * std::cosh(order * t);
    if (exponent > 45) break;
  }
  return kStep * sum;
}

// The power series of K or, with sign = -1, of -π/2 Y (DLMF 10.31.1, 10.31.2 and 10.8.1).
FLOW_HOST_DEVICE inline double second_kind_series(int order, double x, double sign) {
  const double y = sign * x * x / 4;
  const double log_half = std::log(x / 2) + std::numbers::egamma;
  double term = order == 0 ? 1 : x / 2;
  double harmonic = 0;  // 1 + 1/2 + … + 1/k
  double sum = 0;
  for (int k = 0; k < 40; ++k) {
    if (k > 0) {
      term *= y / (static_cast<double>(k) * (k + order));
      harmonic += 1.0 / k;
    }
    const double mean = order == 0 ? harmonic : harmonic + 0.5 / (k + 1);
    const double addend = term * (log_half - mean);
    sum += addend;
    if (k > 2 && std::abs(addend) < kTiny * std::abs(sum)) break;
  }
  return order == 0 ? -sum : 1 / x + sign * sum;
}

// exp(x) K(x); NaN below 0.
FLOW_ROUTINE inline double scaled_k(int order, double x) {
  if (!(x > 0)) return x == 0 ? kInfinity : kNan;
  if (x < 2) return std::exp(x) * second_kind_series(order, x, 1);
  if (x < kFarModified) return scaled_k_integral(order, x);
  if (std::isinf(x)) return 0;
  return std::sqrt(std::numbers::pi / (2 * x)) * hankel_sum(order, x, 1);
}

FLOW_HOST_DEVICE inline double bessel_k0e(double x) {
  return scaled_k(0, x);
}

FLOW_HOST_DEVICE inline double bessel_k1e(double x) {
  return scaled_k(1, x);
}

FLOW_ROUTINE inline double bessel_k(int order, double x) {
  if (x > 0 && x < 2) return second_kind_series(order, x, 1);
  return scaled_k(order, x) * std::exp(-x);
}

FLOW_HOST_DEVICE inline double bessel_k0(double x) {
  return bessel_k(0, x);
}

FLOW_HOST_DEVICE inline double bessel_k1(double x) {
  return bessel_k(1, x);
}

// ---- J and Y

// J and Y of one order at one x.
struct Oscillation {
  double j;
  double y;
};

FLOW_HOST_DEVICE inline Oscillation oscillation_near(int order, double x) {
  const double y = -x * x / 4;
  double term = order == 0 ? 1 : x / 2;
  double sum = term;
  for (int k = 1; k < 40 && std::abs(term) > kTiny * std::abs(sum); ++k) {
    term *= y / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  const double second = order == 0 ? second_kind_series(0, x, -1) : second_kind_series(1, x, -1);
  return {sum, -2 / std::numbers::pi * second};
}

// J_(k - 1) = 2 k / x J_k - J_(k + 1), from a k at which J is negligible; J_0 + 2 J_2 + 2 J_4 + …
// is
// 1. Y_1 is -Y_0', so its series is that of Y_0 with each J differentiated.
FLOW_HOST_DEVICE inline Oscillation oscillation_between(int order, double x) {
  double above = 0;
  double here = 1;  // in proportion to J_k
  double norm = 0;
  double sum_0 = 0;
  double sum_1 = 0;
  for (int k = 2 * static_cast<int>((x + 40) / 2); k > 0; --k) {
    const double below = 2 * k / x * here - above;
    if (k % 2 == 0) {
      const double share = (k % 4 == 0 ? 2.0 : -2.0) / k;
      norm += 2 * here;
      sum_0 += share * here;
      sum_1 += share * (below - above);
    }
    above = here;
    here = below;
  }
  norm += here;
  const double j_0 = here / norm;
  const double j_1 = above / norm;
  const double log_half = std::log(x / 2) + std::numbers::egamma;
  if (order == 0) return {j_0, 2 / std::numbers::pi * (log_half * j_0 - 2 * sum_0 / norm)};
  return {j_1, 2 / std::numbers::pi * (log_half * j_1 - j_0 / x + sum_1 / norm)};
}

// Amplitude and phase (DLMF 10.17.3); the phase is taken from x by an addition theorem, without
// rounding.
FLOW_HOST_DEVICE inline Oscillation oscillation_far(int order, double x) {
  double even = 1;
  double odd = 0;
  double term = 1;
  for (int k = 1; k < 100; ++k) {
    const double factor = 2 * k - 1;
    const double next = term * (4.0 * order * order - factor * factor) / (8 * k * x);
    if (!(std::abs(next) < std::abs(term))) break;
    term = next;
    const double sign = k / 2 % 2 == 0 ? 1 : -1;
    (k % 2 == 0 ? even : odd) += sign * term;
    if (std::abs(term) < kTiny) break;
  }
  const double plus = std::sin(x) + std::cos(x);
  const double minus = std::sin(x) - std::cos(x);
  const double cosine = order == 0 ? plus : minus;  // times √2
  const double sine = order == 0 ? minus : -plus;
  const double amplitude = 1 / std::sqrt(std::numbers::pi * x);
  return {amplitude * (even * cosine - odd * sine), amplitude * (even * sine + odd * cosine)};
}

// Requires: x > 0.
FLOW_ROUTINE inline Oscillation oscillation(int order, double x) {
  if (std::isinf(x)) return {0, 0};
  if (x < 2) return oscillation_near(order, x);
  if (x < kFarOscillating) return oscillation_between(order, x);
  return oscillation_far(order, x);
}

FLOW_HOST_DEVICE inline double bessel_j0(double x) {
  if (x == 0 || std::isnan(x)) return x == 0 ? 1 : x;
  return oscillation(0, std::abs(x)).j;
}

FLOW_HOST_DEVICE inline double bessel_j1(double x) {
  if (x == 0 || std::isnan(x)) return x;
  return std::copysign(1.0, x) * oscillation(1, std::abs(x)).j;
}

FLOW_HOST_DEVICE inline double bessel_y0(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNan;
  return oscillation(0, x).y;
}

FLOW_HOST_DEVICE inline double bessel_y1(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNan;
  return oscillation(1, x).y;
}

// The spherical j_0, sin(x) / x.
FLOW_HOST_DEVICE inline double spherical_j0(double x) {
  if (x == 0) return 1;
  return std::isinf(x) ? 0 : std::sin(x) / x;
}

}  // namespace flow::ops::special
