// Numbers of events from one uniform number each, in double, for kernels of both devices.
//
// The probabilities of the possible numbers are added up, from the most probable number outwards in
// both directions, until they exceed u (Kemp 1986). That takes as many steps as the standard
// deviation is wide, and each number gets its probability to within rounding. From a variance of
// 10^8 on, the expansion of Cornish and Fisher (1938) gives the number to within 10^-4.
#pragma once

#include <cmath>
#include <numbers>

#include "core/device/host_device.h"
#include "ops/elementwise/special/gamma.h"
#include "ops/elementwise/special/routine.h"

namespace flow::ops::special {

// The number from `mode` outwards at which the sum of the probabilities exceeds u. rise(k) is the
// probability of k + 1 divided by that of k. The numbers end at 0 and at `last`.
template <class Rise>
FLOW_HOST_DEVICE double count_outwards(double u, double mode, double last, double peak,
                                       const Rise& rise) {
  double rest = u - peak;
  if (rest < 0) return mode;
  double above = peak;
  double below = peak;
  for (double k = 1; above > 0 || below > 0; ++k) {
    above = mode + k <= last ? above * rise(mode + k - 1) : 0;
    rest -= above;
    if (rest < 0) return mode + k;
    below = mode - k >= 0 ? below / rise(mode - k) : 0;
    rest -= below;
    if (rest < 0) return mode - k;
    if (above + below < 1e-25) break;
  }
  return mode;  // u is within rounding of 1
}

inline constexpr double kLargeVariance = 1e8;

// The number at which a distribution of this mean, variance and third moment reaches u.
FLOW_HOST_DEVICE inline double expanded_count(double u, double mean, double variance,
                                              double third) {
  const double z = normal_quantile(u);
  const double count = mean + std::sqrt(variance) * z + third / variance * (z * z - 1) / 6;
  return std::isinf(z) ? mean : std::nearbyint(count);
}

// A draw from Poisson's distribution; NaN for a rate that is negative or not finite.
FLOW_ROUTINE inline double poisson_count(double rate, double u) {
  if (!(rate >= 0) || std::isinf(rate)) return kNan;
  if (rate == 0) return 0;
  if (rate >= kLargeVariance) return expanded_count(u, rate, rate, rate);
  const double mode = std::floor(rate);
  return count_outwards(u, mode, kInfinity, gamma_density(mode, rate),
                        [rate](double k) { return rate / (k + 1); });
}

// The binomial probability of k of `count` events, 0 < k < count, with the deviances of Loader
// (2000), which do not cancel.
FLOW_HOST_DEVICE inline double binomial_density(double k, double count, double p) {
  const double others = count - k;
  const double deviance = k * log1p_minus((count * p - k) / k) +
                          others * log1p_minus((count * (1 - p) - others) / others);
  return std::exp(stirling_rest(count) - stirling_rest(k) - stirling_rest(others) + deviance) *
         std::sqrt(count / (2 * std::numbers::pi * k * others));
}

// The number of `count` events that happen, each with probability p; NaN unless count is whole and
// not negative, and p between 0 and 1.
FLOW_ROUTINE inline double binomial_count(double count, double p, double u) {
  if (!(count >= 0) || std::isinf(count) || count != std::floor(count) || !(p >= 0 && p <= 1)) {
    return kNan;
  }
  if (count == 0 || p == 0) return 0;
  if (p == 1) return count;
  const double variance = count * p * (1 - p);
  if (variance >= kLargeVariance) {
    const double drawn = expanded_count(u, count * p, variance, variance * (1 - 2 * p));
    return drawn < 0 ? 0 : drawn > count ? count : drawn;
  }
  const double mode = std::floor((count + 1) * p) < count ? std::floor((count + 1) * p) : count;
  const double peak = mode == 0       ? std::exp(count * std::log1p(-p))
                      : mode == count ? std::exp(count * std::log(p))
                                      : binomial_density(mode, count, p);
  const double odds = p / (1 - p);
  return count_outwards(u, mode, count, peak,
                        [=](double k) { return (count - k) / (k + 1) * odds; });
}

}  // namespace flow::ops::special
