// Airy's function Ai in double, for kernels of both devices.
//
// From -9 to 1 the Taylor series at the next of five points is summed, whose coefficients follow
// from y'' = x y and the tabulated Ai and Ai'. To the right Ai is a modified Bessel function of
// order 1/3 (NIST DLMF 9.6.2), to the left its asymptotic series is taken (DLMF 9.7.9).
#pragma once

#include <cmath>
#include <numbers>

#include "core/device/host_device.h"
#include "ops/elementwise/special/bessel.h"
#include "ops/elementwise/special/routine.h"

namespace flow::ops::special {

// Requires: -9 < x <= 1.
FLOW_HOST_DEVICE inline double airy_near(double x) {
  constexpr double kValues[] = {0.35502805388781723926, 0.22740742820168557599,
                                -0.070265532949289515099, -0.32914517362982310523,
                                -0.052705050356386202622};
  constexpr double kSlopes[] = {-0.25881940379280679841, 0.61825902074169104141,
                                -0.7906285753685813803, 0.34593548728134289493,
                                0.93556093819830655103};
  const int point = x > 0 ? 0 : static_cast<int>((1 - x) / 2);
  const double centre = -2.0 * point;
  const double step = x - centre;
  double before = 0;
  double here = kValues[point];
  double after = kSlopes[point];
  double power = 1;
  double sum = 0;
  // (n + 2) (n + 1) a_(n + 2) = centre a_n + a_(n - 1)
  for (int n = 0; n < 40; ++n) {
    sum += here * power;
    power *= step;
    const double next = (centre * here + before) / ((n + 2.0) * (n + 1.0));
    before = here;
    here = after;
    after = next;
  }
  return sum;
}

FLOW_HOST_DEVICE inline double airy_left(double x) {
  const double size = -x;
  const double zeta = 2.0 / 3 * size * std::sqrt(size);
  if (std::isinf(zeta)) return 0;
  double even = 1;
  double odd = 0;
  double term = 1;
  for (int k = 1; k < 50; ++k) {
    const double next =
        term * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1) * zeta);
    if (!(next < term)) break;
    term = next;
    const double sign = k / 2 % 2 == 0 ? 1 : -1;
    (k % 2 == 0 ? even : odd) += sign * term;
    if (term < kTiny) break;
  }
  const double plus = std::sin(zeta) + std::cos(zeta);  // √2 cos(ζ - π / 4)
  const double minus = std::sin(zeta) - std::cos(zeta);
  return (even * plus + odd * minus) / std::sqrt(2 * std::numbers::pi * std::sqrt(size));
}

FLOW_HOST_DEVICE inline double airy_right(double x) {
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  const double scaled =
      zeta < kFarModified ? scaled_k_integral(1.0 / 3, zeta)
                          : std::sqrt(std::numbers::pi / (2 * zeta)) * hankel_sum(1.0 / 3, zeta, 1);
  return std::sqrt(x / 3) / std::numbers::pi * scaled * std::exp(-zeta);
}

FLOW_ROUTINE inline double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  if (x > 1) return airy_right(x);
  return x > -9 ? airy_near(x) : airy_left(x);
}

}  // namespace flow::ops::special
