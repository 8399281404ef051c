// The functions of ops/kernel/vector_math.h for Vec<double>: the C library lane by lane. Double
// serves checks: it is to be right to the last digits, its speed is that of scalar code.
#pragma once

#include <cmath>

#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

inline double sigmoid(double x) {
  const double e = ::exp(-::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

// The normal distribution function, and its density.
inline double normal_below(double x) {
  return 0.5 * ::erfc(-0.70710678118654752440 * x);
}

inline double normal_density(double x) {
  return 0.39894228040143267794 * ::exp(-0.5 * x * x);
}

// sigmoid's argument 2 sqrt(2 / pi) (x + 0.044715 x^3) of gelu_tanh.
inline double gelu_tanh_argument(double x) {
  return 1.59576912160573071176 * (x + 0.044715 * x * x * x);
}

inline double gelu_tanh_slope(double x) {
  const double z = ::fmin(::fmax(x, -30.0), 30.0);
  const double e = ::exp(-::fabs(gelu_tanh_argument(z)));
  const double s = (z < 0 ? e : 1.0) / (1.0 + e);
  const double slope = 1.59576912160573071176 * (1.0 + 0.134145 * z * z);
  return x != x ? x : s + z * slope * e / ((1.0 + e) * (1.0 + e));
}

inline Vec<double> exp(Vec<double> x) {
  return each_lane(x, [](double v) { return ::exp(v); });
}

inline Vec<double> expm1(Vec<double> x) {
  return each_lane(x, [](double v) { return ::expm1(v); });
}

inline Vec<double> log(Vec<double> x) {
  return each_lane(x, [](double v) { return ::log(v); });
}

inline Vec<double> log1p(Vec<double> x) {
  return each_lane(x, [](double v) { return ::log1p(v); });
}

inline Vec<double> tanh(Vec<double> x) {
  return each_lane(x, [](double v) { return ::tanh(v); });
}

inline Vec<double> sigmoid(Vec<double> x) {
  return each_lane(x, [](double v) { return sigmoid(v); });
}

inline Vec<double> erf(Vec<double> x) {
  return each_lane(x, [](double v) { return ::erf(v); });
}

inline Vec<double> sin(Vec<double> x) {
  return each_lane(x, [](double v) { return ::sin(v); });
}

inline Vec<double> cos(Vec<double> x) {
  return each_lane(x, [](double v) { return ::cos(v); });
}

inline Vec<double> softplus(Vec<double> x) {
  return each_lane(x, [](double v) { return (v < 0 ? 0.0 : v) + ::log1p(::exp(-::fabs(v))); });
}

inline Vec<double> silu(Vec<double> x) {
  return each_lane(x, [](double v) { return v * sigmoid(v); });
}

inline Vec<double> gelu_erf(Vec<double> x) {
  return each_lane(x, [](double v) { return v * normal_below(v); });
}

inline Vec<double> gelu_erf_slope(Vec<double> x) {
  return each_lane(x, [](double v) { return normal_below(v) + v * normal_density(v); });
}

inline Vec<double> gelu_tanh(Vec<double> x) {
  return each_lane(x, [](double v) { return v * sigmoid(gelu_tanh_argument(v)); });
}

inline Vec<double> gelu_tanh_slope(Vec<double> x) {
  return each_lane(x, [](double v) { return gelu_tanh_slope(v); });
}

#include "ops/kernel/isa_end.h"
