// Functions that come from the gamma function and from the error function, in double, for kernels
// of both devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/device/host_device.h"
#include "ops/elementwise/special/bessel.h"
#include "ops/elementwise/special/routine.h"

namespace flow::ops::special {

// ---- zeta

// Hurwitz's sum of (q + k)^-s over k >= 0 for s > 1 and q > 0: the first terms, then the formula of
// Euler and Maclaurin with the Bernoulli numbers B2 … B16 over (2 j)! (NIST DLMF 25.11.28), whose
// terms fall if x is well above s.
FLOW_ROUTINE inline double zeta_right(double s, double q) {
  double result = 0;
  double x = q;
  for (; x < 10 + s; ++x) {
    const double term = std::pow(x, -s);
    result += term;
    if (term <= kTiny * result) return result;
  }
  const double first = std::pow(x, -s);
  result += first * x / (s - 1) + first / 2;
  constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                   1.0 / 30240,       -1.0 / 1209600,
                                   1.0 / 47900160,    -691.0 / 1307674368000,
                                   1.0 / 74724249600, -3617.0 / 10670622842880000};
  double power = first / x;
  double rising = s;
  double j = 1;
  for (const double coefficient : kBernoulli) {
    result += coefficient * rising * power;
    rising *= (s + j) * (s + j + 1);
    power /= x * x;
    j += 2;
  }
  return result;
}

// Infinite for s = 1 and for whole q <= 0, NaN for s < 1 and for powers of negative numbers that
// are not real. The terms of negative numbers are the difference of two sums.
FLOW_ROUTINE inline double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return kNan;
  if (s == 1) return kInfinity;
  if (std::isinf(q) && q > 0) return 0;
  if (q > 0) return zeta_right(s, q);
  if (q == std::trunc(q)) return kInfinity;
  if (s != std::trunc(s)) return kNan;
  const double rest = q - std::floor(q);
  const double negative = zeta_right(s, 1 - rest) - zeta_right(s, 1 - q);
  return std::fmod(s, 2.0) == 0 ? zeta_right(s, rest) + negative : zeta_right(s, rest) - negative;
}

// ---- the derivatives of log Γ

// The asymptotic series is used from 10 on, which ψ(x) = ψ(x + 1) - 1 / x reaches. Below 0 the
// reflection ψ(x) = ψ(1 - x) - π / tan(π x) is used (Abramowitz and Stegun 1964, 6.3).
FLOW_ROUTINE inline double psi(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::trunc(x)) return kNan;
    return psi(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * std::fmod(x, 1.0));
  }
  double result = 0;
  for (; x < 10; ++x)
    result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}

// ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x); far below 0 the sum of n = 1 takes its reflection.
FLOW_ROUTINE inline double polygamma(int64_t n, double x) {
  if (n == 0) return psi(x);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0.0 : kNan;
  if (n == 1 && x < 0 && x != std::trunc(x)) {
    const double sine = std::sin(std::numbers::pi * std::fmod(x, 1.0));
    return std::numbers::pi * std::numbers::pi / (sine * sine) - zeta(2, 1 - x);
  }
  const auto order = static_cast<double>(n);
  const double magnitude = std::tgamma(order + 1) * zeta(order + 1, x);
  return n % 2 == 0 ? -magnitude : magnitude;
}

// ---- the incomplete gamma function

// log(1 + x) - x, without cancellation near 0: with s = x / (2 + x) it is
// -x s + 2 (s^3 / 3 + s^5 / 5 + …).
FLOW_HOST_DEVICE inline double log1p_minus(double x) {
  if (!(std::abs(x) < 0.5)) return std::log1p(x) - x;
  const double s = x / (2 + x);
  double power = s * s * s;
  double sum = 0;
  for (int k = 3; k < 80 && std::abs(power) > kTiny * std::abs(x * s); k += 2) {
    sum += power / k;
    power *= s * s;
  }
  return 2 * sum - x * s;
}

// The rest of Stirling's formula: log Γ(a) - (a - 1/2) log a + a - log(2 π) / 2 (Abramowitz and
// Stegun 1964, 6.1.41). Requires: a > 0.
FLOW_HOST_DEVICE inline double stirling_rest(double a) {
  if (a < 10) {
    return std::log(std::tgamma(a)) - (a - 0.5) * std::log(a) + a -
           std::log(2 * std::numbers::pi) / 2;
  }
  const double z = 1 / (a * a);
  return (1.0 / 12 -
          z * (1.0 / 360 -
               z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360))))) /
         a;
}

// x^a exp(-x) / Γ(a + 1) for a >= 0 and finite x > 0: Poisson's probability of a.
FLOW_ROUTINE inline double gamma_density(double a, double x) {
  if (a < 10) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  return std::exp(a * log1p_minus((x - a) / a) - stirling_rest(a)) /
         std::sqrt(2 * std::numbers::pi * a);
}

// Temme's (1979) uniform expansion for large a and x near a (DLMF 8.12): the factor of
// exp(-a η^2 / 2) / sqrt(2 π a). Row k has the Taylor coefficients of c_k(η), which follow from
// c_0 = a / (x - a) - 1 / η and c_k = (c_(k-1)' / η) + (-1)^k g_k a / (x - a).
FLOW_HOST_DEVICE inline double temme_sum(double a, double eta) {
  constexpr int kRows = 5;
  constexpr int kSizes[kRows] = {13, 9, 7, 5, 2};
  constexpr double kRowsOf[kRows][13] = {
      {-0.333333333333333333, 0.0833333333333333333, -0.0148148148148148148, 0.00115740740740740741,
       0.0003527336860670194, -0.000178755144032921811, 0.0000391926317852243778,
       -2.18544851067999216e-6, -1.85406221071515996e-6, 8.29671134095308601e-7,
       -1.76659527368260793e-7, 6.70785354340149858e-9, 1.0261809784240308e-8},
      {-0.00185185185185185185, -0.00347222222222222222, 0.0026455026455026455,
       -0.000990226337448559671, 0.000205761316872427984, -4.01877572016460905e-7,
       -0.0000180985503344899778, 7.64916091608111008e-6, -1.6120900894563446e-6},
      {0.0041335978835978836, -0.00268132716049382716, 0.000771604938271604938,
       2.00938786008230453e-6, -0.000107366532263651605, 0.0000529234488291201254,
       -0.0000127606351886187277},
      {0.000649434156378600823, 0.000229472093621399177, -0.000469189494395255712,
       0.000267720632062838853, -0.0000756180167188397641},
      {-0.000861888290916711699, 0.000784039221720066627}};
  double sum = 0;
  for (int k = kRows - 1; k >= 0; --k) {
    double row = 0;
    for (int n = kSizes[k] - 1; n >= 0; --n)
      row = row * eta + kRowsOf[k][n];
    sum = sum / a + row;
  }
  return sum;
}

// The lower sum, DLMF 8.11.4, in units of gamma_density.
FLOW_HOST_DEVICE inline double lower_series(double a, double x) {
  double term = 1;
  double sum = 1;
  for (int n = 1; n < 10000 && term > kTiny * sum; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum;
}

// Legendre's continued fraction of the upper function (DLMF 8.9.2), in units of gamma_density, by
// the method of Lentz (1976).
FLOW_HOST_DEVICE inline double upper_fraction(double a, double x) {
  double b = x + 1 - a;
  double c = kInfinity;
  double d = 1 / b;
  double value = d;
  for (int n = 1; n < 10000; ++n) {
    const double numerator = n * (a - n);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    const double change = c * d;
    value *= change;
    if (std::abs(change - 1) < 1e-16) break;
  }
  return value * a;
}

// The regularised lower function P(a, x) or the upper Q(a, x) = 1 - P; NaN below 0.
FLOW_ROUTINE inline double incomplete_gamma(double a, double x, bool is_upper) {
  const auto of_lower = [is_upper](double p) { return is_upper ? 1 - p : p; };
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0)) return kNan;
  if (std::isinf(a)) return std::isinf(x) ? kNan : of_lower(0);
  if (a == 0 || std::isinf(x)) return of_lower(1);
  if (x == 0) return of_lower(0);
  const double distance = (x - a) / a;
  if (a >= 1000 && std::abs(distance) < 0.2) {
    const double exponent = -log1p_minus(distance);  // η^2 / 2
    const double eta = std::copysign(std::sqrt(2 * exponent), distance);
    const double rest =
        std::exp(-a * exponent) / std::sqrt(2 * std::numbers::pi * a) * temme_sum(a, eta);
    const double side = eta * std::sqrt(a / 2);
    return is_upper ? std::erfc(side) / 2 + rest : std::erfc(-side) / 2 - rest;
  }
  const double density = gamma_density(a, x);
  if (x < a + 1) return of_lower(density == 0 ? 0 : density * lower_series(a, x));
  const double upper = density == 0 ? 0 : density * upper_fraction(a, x);
  return is_upper ? upper : 1 - upper;
}

FLOW_HOST_DEVICE inline double gammainc(double a, double x) {
  return incomplete_gamma(a, x, false);
}

FLOW_HOST_DEVICE inline double gammaincc(double a, double x) {
  return incomplete_gamma(a, x, true);
}

// ---- the scaled error function

// exp(x^2) with the part of x^2 that rounding loses.
FLOW_HOST_DEVICE inline double exp_of_square(double x) {
  const double square = x * x;
  return std::exp(square) * (1 + std::fma(x, x, -square));
}

// exp(x^2) erfc(x). Far from 0 it is an asymptotic series (DLMF 7.12.1).
FLOW_ROUTINE inline double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x < -26.7) return kInfinity;
  if (x < 25) return exp_of_square(x) * std::erfc(x);
  const double y = 1 / (2 * x * x);
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 12; ++k) {
    term *= -(2 * k - 1) * y;
    sum += term;
  }
  return sum * std::numbers::inv_sqrtpi / x;
}

// ---- inverses and logarithms

// Winitzki's (2008) approximation, refined by three steps of Halley's method. Beyond 0.5 the
// distance to 1 matters, so erfc measures the error.
FLOW_ROUTINE inline double erf_inverse(double x) {
  const double size = std::abs(x);
  if (!(size < 1)) return size == 1 ? std::copysign(kInfinity, x) : kNan;
  if (size < 1e-8) return x / (2 * std::numbers::inv_sqrtpi);
  constexpr double kShape = 0.147;
  const double log_rest = std::log1p(-size * size);
  const double middle = 2 / (std::numbers::pi * kShape) + log_rest / 2;
  double y = std::sqrt(std::sqrt(middle * middle - log_rest / kShape) - middle);
  for (int step = 0; step < 3; ++step) {
    const double error = size < 0.5 ? std::erf(y) - size : (1 - size) - std::erfc(y);
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
    if (slope == 0) break;
    const double newton = error / slope;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

// The logarithm of the normal distribution function; below -1 by erfcx, which does not underflow.
FLOW_ROUTINE inline double log_normal_cdf(double x) {
  const double z = x / std::numbers::sqrt2;
  if (x < -1) return std::log(erfcx(-z) / 2) - z * z;
  return std::log1p(-std::erfc(z) / 2);
}

// The x at which the normal distribution function is p. In the tails, Newton's method finds the z >
// 0 with log erfc(z) = log(2 p); the logarithm is nearly a parabola, so a few steps are enough.
FLOW_ROUTINE inline double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  if (std::abs(p - 0.5) < 0.25) return std::numbers::sqrt2 * erf_inverse(2 * p - 1);
  const double goal = std::log(2 * (p < 0.5 ? p : 1 - p));
  double z = std::sqrt(-goal);
  for (int step = 0; step < 20; ++step) {
    const double scaled = erfcx(z);
    const double change =
        (std::log(scaled) - z * z - goal) * scaled / (2 * std::numbers::inv_sqrtpi);
    z += change;
    if (std::abs(change) < 1e-15 * z) break;
  }
  return p < 0.5 ? -std::numbers::sqrt2 * z : std::numbers::sqrt2 * z;
}

}  // namespace flow::ops::special
