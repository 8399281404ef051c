#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/vector_probe.h"

namespace flow::ops {
namespace {

using Real = long double;
using Floats = std::numeric_limits<float>;

constexpr float kInf = Floats::infinity();
constexpr float kNan = Floats::quiet_NaN();

Real sigmoid_reference(Real x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

Real normal_reference(Real x) {
  return std::erfc(-x * 0.707106781186547524400844L) / 2;
}

Real gelu_tanh_argument_reference(Real x) {
  return 1.595769121605730711759784L * (x + 0.044715L * x * x * x);
}

Real gelu_erf_slope_reference(Real x) {
  const Real density = 0.398942280401432677939946L * std::exp(-x * x / 2);
  return normal_reference(x) + (std::fabs(x) > 100 ? 0 : x * density);
}

Real gelu_tanh_slope_reference(Real x) {
  if (std::fabs(x) > 50) return x > 0 ? 1 : 0;
  const Real s = sigmoid_reference(gelu_tanh_argument_reference(x));
  return s + x * s * (1 - s) * 1.595769121605730711759784L * (1 + 0.134145L * x * x);
}

// Errors are counted in units of the last place of the exact result. If a result is a product of a
// small factor and x, or passes through zero, the absolute error `absolute` is accepted too.
struct Accuracy {
  std::string_view name;
  Real (*reference)(Real);
  double units;
  Real absolute = 0;
};

const std::array kAccuracies = {
    Accuracy{"exp", [](Real x) { return std::exp(x); }, 1.0},
    Accuracy{"expm1", [](Real x) { return std::expm1(x); }, 2.0},
    Accuracy{"log", [](Real x) { return std::log(x); }, 1.0},
    Accuracy{"log1p", [](Real x) { return std::log1p(x); }, 2.0},
    Accuracy{"tanh", [](Real x) { return std::tanh(x); }, 3.0},
    Accuracy{"sigmoid", sigmoid_reference, 2.5},
    Accuracy{"softplus",
             [](Real x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, 2.5},
    Accuracy{"erf", [](Real x) { return std::erf(x); }, 1.5},
    Accuracy{"silu", [](Real x) { return x * sigmoid_reference(x); }, 4.0, 1e-42L},
    Accuracy{"gelu_erf", [](Real x) { return x * normal_reference(x); }, 6.0},
    Accuracy{"gelu_tanh",
             [](Real x) { return x * sigmoid_reference(gelu_tanh_argument_reference(x)); }, 6.0,
             1e-8L},
    Accuracy{"gelu_erf_slope", gelu_erf_slope_reference, 4.0, 2e-7L},
    Accuracy{"gelu_tanh_slope", gelu_tanh_slope_reference, 4.0, 3e-7L},
    Accuracy{"sin", [](Real x) { return std::sin(x); }, 2.0},
    Accuracy{"cos", [](Real x) { return std::cos(x); }, 2.0},
    Accuracy{"tan", [](Real x) { return std::tan(x); }, 3.0},
    Accuracy{"atan", [](Real x) { return std::atan(x); }, 3.0},
    Accuracy{"asin", [](Real x) { return std::asin(x); }, 3.0},
    Accuracy{"acos", [](Real x) { return std::acos(x); }, 3.0},
};

// Every kStride-th bit pattern, which visits each binade of both signs, and values next to limits.
std::vector<float> sample_floats() {
  constexpr uint32_t kStride = 40009;
  std::vector<float> x = {0.0F,     -0.0F,        kInf,        -kInf,         kNan,
                          1.0F,     -1.0F,        88.7228F,    88.72284F,     -103.97F,
                          -103.98F, -0.99999994F, 0.99999994F, Floats::min(), Floats::denorm_min(),
                          -87.3365F};
  for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += kStride) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
  }
  return x;
}

Real unit_of_last_place(Real exact) {
  if (std::fabs(exact) < Floats::min()) return Floats::denorm_min();
  return std::ldexp(Real{1}, std::ilogb(exact) - 23);
}

// The number of inputs for which `actual` violates `accuracy`; `worst` describes one of them.
int count_misses(const Accuracy& accuracy, const std::vector<float>& x,
                 const std::vector<Real>& exact, const std::vector<float>& actual,
                 std::string& worst) {
  int misses = 0;
  Real largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto rounded = static_cast<float>(exact[i]);
    bool is_right = true;
    Real units = 0;
    if (std::isnan(rounded) || std::isnan(actual[i])) {
      is_right = std::isnan(rounded) && std::isnan(actual[i]);
    } else if (std::isinf(rounded) || std::isinf(actual[i])) {
      is_right = rounded == actual[i];
    } else {
      const Real error = std::fabs(exact[i] - actual[i]);
      units = error / unit_of_last_place(exact[i]);
      is_right = units <= accuracy.units || error <= accuracy.absolute;
      if (exact[i] == 0) is_right = is_right && std::signbit(rounded) == std::signbit(actual[i]);
    }
    if (is_right) continue;
    ++misses;
    if (misses == 1 || units > largest) {
      largest = units;
      std::ostringstream text;
      text.precision(9);
      text << "at " << x[i] << ": " << actual[i] << " for " << rounded << ", " << units << " units";
      worst = text.str();
    }
  }
  return misses;
}

const VectorFunction& find_function(const VectorProbe& probe, std::string_view name) {
  for (const VectorFunction& f : probe.functions) {
    if (f.name == name) return f;
  }
  throw std::out_of_range(std::string(name));
}

class VectorMath : public testing::TestWithParam<Accuracy> {};

TEST_P(VectorMath, StaysWithinItsUnitsOfTheLastPlace) {
  const Accuracy& accuracy = GetParam();
  const std::vector<float> x = sample_floats();
  std::vector<Real> exact(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    exact[i] = accuracy.reference(x[i]);

  for (const VectorProbe& probe : probes_of_this_machine()) {
    std::vector<float> actual(x.size());
    find_function(probe, accuracy.name)
        .f32(actual.data(), x.data(), static_cast<int64_t>(x.size()));

    std::string worst;
    EXPECT_EQ(count_misses(accuracy, x, exact, actual, worst), 0)
        << accuracy.name << " with " << probe.num_lanes << " lanes " << worst;
  }
}

TEST_P(VectorMath, IsRightInDouble) {
  const Accuracy& accuracy = GetParam();
  std::vector<double> x;
  for (int i = -90; i <= 12; ++i)
    x.insert(x.end(), {std::pow(1.3, i), -std::pow(1.3, i)});

  for (const VectorProbe& probe : probes_of_this_machine()) {
    std::vector<double> actual(x.size());
    find_function(probe, accuracy.name)
        .f64(actual.data(), x.data(), static_cast<int64_t>(x.size()));

    for (size_t i = 0; i < x.size(); ++i) {
      const Real exact = accuracy.reference(x[i]);
      if (!std::isfinite(exact)) {
        EXPECT_TRUE(std::isnan(exact) ? std::isnan(actual[i]) : actual[i] == exact)
            << accuracy.name << " of " << x[i];
      } else {
        EXPECT_LE(std::fabs(exact - actual[i]), 3e-15L * std::fabs(exact) + 1e-15L)
            << accuracy.name << " of " << x[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath, testing::ValuesIn(kAccuracies),
                         [](const auto& row) { return std::string(row.param.name); });

struct SpecialValue {
  std::string_view name;
  float x;
  float y;
};

TEST(VectorMathSpecialValues, FollowTheFunctionsLimits) {
  const std::array values = {
      SpecialValue{"exp", -kInf, 0.0F},
      SpecialValue{"exp", kInf, kInf},
      SpecialValue{"exp", 88.72284F, kInf},
      SpecialValue{"exp", 0.0F, 1.0F},
      SpecialValue{"expm1", -kInf, -1.0F},
      SpecialValue{"expm1", -0.0F, -0.0F},
      SpecialValue{"log", 0.0F, -kInf},
      SpecialValue{"log", -0.0F, -kInf},
      SpecialValue{"log", -1.0F, kNan},
      SpecialValue{"log", kInf, kInf},
      SpecialValue{"log", 1.0F, 0.0F},
      SpecialValue{"log1p", -1.0F, -kInf},
      SpecialValue{"log1p", -2.0F, kNan},
      SpecialValue{"log1p", kInf, kInf},
      SpecialValue{"log1p", -0.0F, -0.0F},
      SpecialValue{"tanh", kInf, 1.0F},
      SpecialValue{"tanh", -kInf, -1.0F},
      SpecialValue{"tanh", -0.0F, -0.0F},
      SpecialValue{"sigmoid", kInf, 1.0F},
      SpecialValue{"sigmoid", -kInf, 0.0F},
      SpecialValue{"sigmoid", 0.0F, 0.5F},
      SpecialValue{"erf", kInf, 1.0F},
      SpecialValue{"erf", -0.0F, -0.0F},
      SpecialValue{"softplus", -kInf, 0.0F},
      SpecialValue{"softplus", kInf, kInf},
      SpecialValue{"gelu_erf", kInf, kInf},
      SpecialValue{"gelu_erf", -20.0F, -0.0F},
      SpecialValue{"gelu_tanh", -20.0F, -0.0F},
      SpecialValue{"gelu_tanh", kInf, kInf},
      SpecialValue{"gelu_erf_slope", 20.0F, 1.0F},
      SpecialValue{"gelu_tanh_slope", kInf, 1.0F},
      SpecialValue{"sin", kInf, kNan},
      SpecialValue{"sin", -0.0F, -0.0F},
      SpecialValue{"cos", 0.0F, 1.0F},
      SpecialValue{"tan", -0.0F, -0.0F},
      SpecialValue{"tan", kInf, kNan},
      SpecialValue{"atan", -0.0F, -0.0F},
      SpecialValue{"atan", kInf, 1.57079633F},
      SpecialValue{"asin", -0.0F, -0.0F},
      SpecialValue{"asin", 1.0F, 1.57079633F},
      SpecialValue{"asin", 1.0000001F, kNan},
      SpecialValue{"acos", 1.0F, 0.0F},
      SpecialValue{"acos", -1.0F, 3.14159274F},
      SpecialValue{"acos", -1.0000001F, kNan},
  };

  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (const SpecialValue& value : values) {
      float y = 0;
      find_function(probe, value.name).f32(&y, &value.x, 1);

      EXPECT_TRUE(std::isnan(value.y) ? std::isnan(y)
                                      : y == value.y && std::signbit(y) == std::signbit(value.y))
          << value.name << "(" << value.x << ") is " << y << " with " << probe.num_lanes
          << " lanes";
    }
  }
}

TEST(VectorMathSpecialValues, NanStaysNan) {
  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (const VectorFunction& f : probe.functions) {
      float y = 0;
      f.f32(&y, &kNan, 1);

      EXPECT_TRUE(std::isnan(y)) << f.name << " with " << probe.num_lanes << " lanes";
    }
  }
}

// Whether `actual` is within one unit of the last place of `exact`, or has the same special value.
bool is_power(float actual, Real exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(actual)) return std::isnan(rounded) && std::isnan(actual);
  if (std::isinf(rounded) || std::isinf(actual) || rounded == 0) {
    return std::fabs(actual - rounded) <= Floats::denorm_min() || rounded == actual;
  }
  return std::fabs(exact - actual) <= unit_of_last_place(exact);
}

// Every pair of special values, and numbers whose powers reach both ends of the range.
TEST(VectorPow, AgreesWithTheCLibrary) {
  std::vector<float> bases = {0.0F,
                              -0.0F,
                              1.0F,
                              -1.0F,
                              kInf,
                              -kInf,
                              kNan,
                              2.0F,
                              -2.0F,
                              0.5F,
                              -0.5F,
                              Floats::min(),
                              Floats::denorm_min()};
  std::vector<float> exponents = {0.0F,   -0.0F,  1.0F, -1.0F, 0.5F, -0.5F, 2.0F,
                                  3.0F,   -3.0F,  kInf, -kInf, kNan, 1e30F, Floats::denorm_min(),
                                  127.0F, -149.0F};
  for (int i = -40; i <= 40; ++i) {
    bases.push_back(std::exp(static_cast<float>(i) * 0.31F));
    bases.push_back(-1.0F + static_cast<float>(i) * 1e-3F);
    bases.push_back(1.0F + static_cast<float>(i) * 1e-6F);
    exponents.push_back(static_cast<float>(i) * 0.73F);
    exponents.push_back(static_cast<float>(i) * 1e4F);
  }
  std::vector<float> a, b;
  for (const float base : bases) {
    for (const float exponent : exponents) {
      a.push_back(base);
      b.push_back(exponent);
    }
  }

  for (const VectorProbe& probe : probes_of_this_machine()) {
    const auto found = std::find_if(probe.operators.begin(), probe.operators.end(),
                                    [](const VectorOperator& f) { return f.name == "pow"; });
    ASSERT_NE(found, probe.operators.end());
    std::vector<float> y(a.size());
    found->f32(y.data(), a.data(), b.data(), std::ssize(a));
    for (size_t i = 0; i < y.size(); ++i) {
      const Real exact = std::pow(static_cast<Real>(a[i]), static_cast<Real>(b[i]));
      EXPECT_TRUE(is_power(y[i], exact))
          << a[i] << " to the " << b[i] << " is " << y[i] << ", not " << static_cast<float>(exact)
          << ", with " << probe.num_lanes << " lanes";
      if (exact == 0) {
        EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << a[i] << " to the " << b[i];
      }
    }
  }
}

}  // namespace
}  // namespace flow::ops
