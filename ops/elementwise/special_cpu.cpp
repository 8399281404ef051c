// Kernels of ops/elementwise/special.h, one element at a time in double.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/special_op.h"

#include "ops/kernel/isa_begin.h"

void register_special_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The C library's lgamma stores the sign in a global variable; this form does not.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

// The asymptotic series is used from 10 on, which ψ(x) = ψ(x + 1) - 1 / x reaches. Below 0 the
// reflection ψ(x) = ψ(1 - x) - π / tan(π x) is used (Abramowitz and Stegun 1964, 6.3).
double psi(double x) {
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

// Hurwitz's sum of (x + k)^-s for a whole s >= 2: terms up to 10, then Euler and Maclaurin's
// formula with the Bernoulli numbers B2 … B16 over (2 j)!.
double zeta(double s, double x) {
  if (x <= 0 && x == std::trunc(x)) return kInfinity;
  double result = 0;
  for (; x < 10; ++x)
    result += std::pow(x, -s);
  result += std::pow(x, 1 - s) / (s - 1) + std::pow(x, -s) / 2;
  constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                   1.0 / 30240,       -1.0 / 1209600,
                                   1.0 / 47900160,    -691.0 / 1307674368000,
                                   1.0 / 74724249600, -3617.0 / 10670622842880000};
  double power = std::pow(x, -s - 1);
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

// ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x); far below 0 the sum of n = 1 takes its reflection.
double polygamma_of(int64_t n, double x) {
  if (n == 0) return psi(x);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0.0 : kNan;
  if (n == 1 && x < 0 && x != std::trunc(x)) {
    const double sine = std::sin(std::numbers::pi * std::fmod(x, 1.0));
    return std::numbers::pi * std::numbers::pi / (sine * sine) - zeta(2, 1 - x);
  }
  const auto order = static_cast<double>(n);
  const double magnitude = std::exp(log_gamma(order + 1)) * zeta(order + 1, x);
  return n % 2 == 0 ? -magnitude : magnitude;
}

// Winitzki's (2008) approximation, refined by three steps of Halley's method. Beyond 0.5 the
// distance to 1 matters, so erfc measures the error.
double erf_inverse(double x) {
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

struct Lgamma {
  template <class T>
  static T apply(T x) {
    return static_cast<T>(log_gamma(static_cast<double>(x)));
  }
};

struct Erfinv {
  template <class T>
  static T apply(T x) {
    return static_cast<T>(erf_inverse(static_cast<double>(x)));
  }
};

struct Polygamma {
  template <class C>
  static auto make(const void* attrs) {
    const int64_t n = static_cast<const PolygammaAttrs*>(attrs)->n;
    return [n](C x) { return static_cast<C>(polygamma_of(n, static_cast<double>(x))); };
  }
};

template <class F>
void add_unary(KernelTable& table, const OpDef& op) {
  add_reference<F, Types::kFloating, 1>(table, op);
  add_loops<F, double, double>(table, op);
  add_loops<F, float, float>(table, op);
}

}  // namespace

void register_special_cpu(KernelTable& table) {
  add_unary<OfTensors<Lgamma>>(table, kLgamma);
  add_unary<Polygamma>(table, kPolygamma);
  add_unary<OfTensors<Erfinv>>(table, kErfinv);
}

#else

void register_special_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
