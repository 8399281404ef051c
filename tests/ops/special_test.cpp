#include "ops/elementwise/special.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/index/index.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Special, LdexpHasTheDtypeOfAFloatingNumber) {
  const Tensor exponent = tensor({15, -2});

  const Tensor y = ldexp(ones({2}, {.dtype = float16}), exponent);
  EXPECT_EQ(y.dtype(), float16);
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{32768, 0.25}));
  EXPECT_EQ(ldexp(exponent, exponent).dtype(), float32);
}

TEST(Special, Logaddexp2ComputesInThePromotedDtype) {
  const Tensor x = tensor({0.25, 1.0, -3.0}).to(float64);
  const Tensor y = tensor({1.5, -2.25, 0.5});

  const Tensor wide = logaddexp2(x, y.to(bfloat16));
  EXPECT_EQ(wide.dtype(), float64);
  for (int64_t i = 0; i < 3; ++i) {
    const double sum = std::exp2(x[i].item()) + std::exp2(y[i].item());
    EXPECT_NEAR(wide[i].item(), std::log2(sum), 1e-12);
  }
  EXPECT_EQ(logaddexp2(y.to(bfloat16), tensor({1, 2, 3})).dtype(), bfloat16);
  EXPECT_THROW(logaddexp2(tensor({1}), tensor({2})), InvalidArgument);
}

// Parts of a minimum are infinite on ranks that have none, and gammainc(inf, inf) is NaN.
TEST(Special, IncompleteGammaOfInfinityInEveryLayout) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor a = tensor({2.0, 3.0}).to_global(both, sbp::broadcast);
    const Tensor x = tensor({kInfinity, 3.0}).to_global(both, sbp::broadcast);
    for (const auto function : {gammainc, gammaincc}) {
      const std::vector<double> wanted = function(a, x).full().to_vector<double>();
      const Tensor of_a = function(a.to_global({.sbp = sbp::partial_min}), x);
      const Tensor of_x = function(a, x.to_global({.sbp = sbp::partial_min}));
      EXPECT_EQ(of_a.full().to_vector<double>(), wanted);
      EXPECT_EQ(of_x.full().to_vector<double>(), wanted);
    }
  });
}

using OfOne = Tensor (*)(const TensorArg&);

struct Curve {
  const char* name;
  OfOne function;
  std::vector<double> x;
  std::vector<double> y;  // computed with 30 digits
};

const std::vector<Curve>& curves() {
  static const std::vector<Curve> all = {
      {"i0", i0, {0.5, 40, -3}, {1.0634833707413235, 14894774793419900.0, 4.8807925858650241}},
      {"i1e", i1e, {0.5, 40, -3}, {0.1564208031848717, 0.062482229074442061, -0.19682671329730085}},
      {"k0",
       modified_bessel_k0,
       {0.1, 3, 50},
       {2.4270690247020166, 0.034739504386279248, 3.4101677497894955e-23}},
      {"k1e",
       scaled_modified_bessel_k1,
       {0.1, 3, 50},
       {10.890182683049696, 0.8065634801287869, 0.17856655855881557}},
      {"j0",
       bessel_j0,
       {0.7, 11, -60},
       {0.8812008886074053, -0.17119030040719609, -0.09147180408906187}},
      {"j1",
       bessel_j1,
       {0.7, 11, -60},
       {0.32899574154005893, -0.1767852989567215, -0.046598383758166318}},
      {"y0",
       bessel_y0,
       {0.7, 11, 60},
       {-0.19066492933739512, -0.16884732389207954, 0.047358952209449399}},
      {"y1",
       bessel_y1,
       {0.7, 11, 60},
       {-1.1032498719076334, 0.16370553741494285, 0.091869609369866895}},
      {"ai",
       airy_ai,
       {-12, -5, 0.25, 4},
       {-0.066555175054373129, 0.35076100902411432, 0.29116395434854521, 0.00095156385120480187}},
      {"log_ndtr",
       log_ndtr,
       {-40, -5, 3},
       {-804.60844201375379, -15.064998393988727, -0.0013508099647481938}},
      {"ndtri",
       ndtri,
       {1e-30, 0.2, 0.5, 0.9},
       {-11.464024688443616, -0.84162123357291441, 0, 1.2815515655446004}},
      {"erfcx", erfcx, {-2, 1, 40}, {108.94090438997797, 0.427583576155807, 0.014100335983377814}},
  };
  return all;
}

TEST(Special, FunctionsOfOneNumberAreAccurateInEveryRegion) {
  for (const Curve& curve : curves()) {
    const auto n = static_cast<int64_t>(curve.x.size());
    const Tensor x = tensor(curve.x, {n}, {.dtype = float64});
    const auto wide = curve.function(x).to_vector<double>();
    const auto narrow = curve.function(cast(x, float32)).to_vector<float>();
    for (size_t i = 0; i < curve.x.size(); ++i) {
      const double y = curve.y[i];
      EXPECT_NEAR(wide[i], y, 3e-14 * std::abs(y)) << curve.name << "(" << curve.x[i] << ")";
      EXPECT_NEAR(narrow[i], y, 1e-5 * std::abs(y)) << curve.name << "(" << curve.x[i] << ")";
    }
  }
}

TEST(Special, EndsOfTheDomainsHaveTheirLimits) {
  const Tensor x = tensor(std::vector<double>{0, -1, kInfinity, kNan}, {4}, {.dtype = float64});
  const auto k0 = modified_bessel_k0(x).to_vector<double>();
  EXPECT_EQ(k0[0], kInfinity);
  EXPECT_TRUE(std::isnan(k0[1]));
  EXPECT_EQ(k0[2], 0);
  EXPECT_TRUE(std::isnan(k0[3]));
  EXPECT_EQ(bessel_y1(x).to_vector<double>()[0], -kInfinity);
  EXPECT_EQ(bessel_j0(x).to_vector<double>()[2], 0);
  EXPECT_EQ(i0(x).to_vector<double>()[2], kInfinity);
  EXPECT_TRUE(std::isnan(airy_ai(x).to_vector<double>()[3]));
}

struct Point {
  double a, b, y;
};

void expect_points(Tensor (*function)(const TensorArg&, const TensorArg&),
                   const std::vector<Point>& points) {
  for (const Point& point : points) {
    const Tensor y =
        function(full({}, point.a, {.dtype = float64}), full({}, point.b, {.dtype = float64}));
    if (std::isnan(point.y)) {
      EXPECT_TRUE(std::isnan(y.item<double>())) << point.a << ", " << point.b;
    } else if (std::isinf(point.y)) {
      EXPECT_EQ(y.item<double>(), point.y) << point.a << ", " << point.b;
    } else {
      EXPECT_NEAR(y.item<double>(), point.y, 1e-13 * std::abs(point.y))
          << point.a << ", " << point.b;
    }
  }
}

TEST(Special, IncompleteGammaFunctionsKeepTheirSmallTails) {
  expect_points(gammainc, {{0.5, 0.2, 0.47291074313446193},
                           {7, 11, 0.9213856279068667},
                           {2000, 1950, 0.13135263695671471},
                           {0, 1, 1},
                           {1, 0, 0},
                           {1, kInfinity, 1},
                           {0, 0, kNan},
                           {-1, 1, kNan}});
  expect_points(igammac, {{0.5, 0.2, 0.52708925686553807},
                          {7, 11, 0.078614372093133297},
                          {2000, 1950, 0.86864736304328529},
                          {3, 50, 2.509303552201057e-19},
                          {kInfinity, 1, 1}});
}

TEST(Special, ZetaTakesLargePowersAndNegativeOffsets) {
  expect_points(zeta, {{2, 1, 1.6449340668482264},
                       {1.5, 0.25, 10.213055360466601},
                       {100, 10.5, 7.6053417630645738e-103},
                       {1, 2, kInfinity},
                       {2, -1, kInfinity},
                       {2.5, -1.5, kNan},
                       {0.5, 2, kNan}});
  EXPECT_NEAR(zeta(3, full({}, -2.5, {.dtype = float64})).item<double>(), 0.054102025820863702,
              1e-14);
}

TEST(Special, EntropyAndFloatPower) {
  EXPECT_EQ(entr(tensor({-1.F, 0.F, 1.F})).to_vector<float>(),
            (std::vector<float>{-INFINITY, 0, 0}));
  EXPECT_EQ(xlog1py(0, tensor({-1.F})).item<float>(), 0);
  const Tensor half = float_power(tensor({2}), -1);
  EXPECT_EQ(half.dtype(), float64);
  EXPECT_EQ(half.item<double>(), 0.5);
  EXPECT_EQ(float_power(2, tensor({3})).item<double>(), 8);
  EXPECT_EQ(float_power(tensor({4}), tensor({0.5F})).item<double>(), 2);
}

TEST(Special, DerivativesThatAreMissingAreRefused) {
  const Tensor a = full({2}, 1.5, {.requires_grad = true});
  const Tensor x = full({2}, 0.5, {.requires_grad = true});
  gammainc(a.detach(), x).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_THROW(gammainc(a, x.detach()).sum().backward(), Unsupported);
  EXPECT_THROW(zeta(a, x.detach()).sum().backward(), Unsupported);
  EXPECT_FALSE(airy_ai(x).requires_grad());
}

TEST(Special, DivisorsAndMultiplesAreNotNegative) {
  const Tensor a = tensor({0, 0, -4, 6, -12});
  const Tensor b = tensor({0, 5, 6, -9, -18});
  EXPECT_EQ(gcd(a, b).to_vector<int64_t>(), (std::vector<int64_t>{0, 5, 2, 3, 6}));
  EXPECT_EQ(lcm(a, b).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 12, 18, 36}));
  const auto narrow = lcm(cast(a, int8), cast(b, uint8).abs());
  EXPECT_EQ(narrow.dtype(), int16);
  EXPECT_THROW(gcd(ones({2}), ones({2})), InvalidArgument);
}

// The values are PyTorch's.
TEST(Special, NextafterStepsInTheDtype) {
  const std::vector<float> from = {1, 0, 65504, INFINITY, -1, 1, 2};
  const std::vector<float> to = {0, 1, INFINITY, 0, -2, 1, 3};
  const Tensor a = tensor(from, {7});
  const Tensor b = tensor(to, {7});
  const auto half = cast(nextafter(cast(a, float16), cast(b, float16)), float32);
  EXPECT_EQ(half.to_vector<float>(), (std::vector<float>{0.99951171875F, 0x1p-24F, INFINITY, 65504,
                                                         -1.0009765625F, 1, 2.001953125F}));
  const auto brain = cast(nextafter(cast(a, bfloat16), cast(b, bfloat16)), float32);
  EXPECT_EQ(brain.to_vector<float>(), (std::vector<float>{0.99609375F, 0x1p-133F, 66048,
                                                          0x1.fep127F, -1.0078125F, 1, 2.015625F}));
  const auto single = nextafter(a, b).to_vector<float>();
  EXPECT_EQ(single[0], std::nextafter(1.0F, 0.0F));
  EXPECT_EQ(single[1], std::numeric_limits<float>::denorm_min());
}

TEST(Special, MethodsAndInPlaceFormsAreTheFunctions) {
  const Tensor a = tensor({0.5, 2.0, 3.5}, {.dtype = float64});
  const Tensor x = tensor({1.5, 0.25, 4.0}, {.dtype = float64});
  const auto expect_equal = [](const Tensor& one, const Tensor& other) {
    EXPECT_EQ(one.to_vector<double>(), other.to_vector<double>());
  };
  expect_equal(a.igamma(x), gammainc(a, x));
  expect_equal(a.clone().igamma_(x), gammainc(a, x));
  expect_equal(a.igammac(x), gammaincc(a, x));
  expect_equal(a.clone().igammac_(x), gammaincc(a, x));
  expect_equal(a.i0(), i0(a));
  expect_equal(a.clone().i0_(), i0(a));
  expect_equal(x.nextafter(a), nextafter(x, a));
  expect_equal(x.clone().nextafter_(a), nextafter(x, a));
  expect_equal((a + 1).mvlgamma(2), multigammaln(a + 1, 2));
  expect_equal((a + 1).mvlgamma_(2), multigammaln(a + 1, 2));
  expect_equal(a.float_power(2), float_power(a, 2));
  expect_equal(a.float_power(x), float_power(a, x));
  expect_equal(a.frexp().mantissa, frexp(a).mantissa);
  const Tensor n = tensor({12, -9});
  const Tensor m = tensor({8, 6});
  EXPECT_EQ(n.gcd(m).to_vector<int64_t>(), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(n.lcm(m).to_vector<int64_t>(), (std::vector<int64_t>{24, 18}));
  EXPECT_EQ(n.clone().gcd_(m).to_vector<int64_t>(), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(n.clone().lcm_(m).to_vector<int64_t>(), (std::vector<int64_t>{24, 18}));
  const Tensor ints = tensor({1, 2});
  EXPECT_THROW(ints.i0_(), InvalidArgument);  // floats do not fit into integers
}

TEST(Special, MatricesOfRealNumbersAreTheirConjugates) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, {.dtype = float64});
  EXPECT_EQ(x.H().to_vector<double>(), (std::vector<double>{1, 3, 2, 4}));
  EXPECT_EQ(x.unsqueeze(0).mH().shape(), Shape({1, 2, 2}));
  EXPECT_THROW(x.unsqueeze(0).H(), InvalidArgument);
}

TEST(Special, CanCastWithinACategoryAndUpwards) {
  EXPECT_TRUE(can_cast(float64, float16));
  EXPECT_TRUE(can_cast(int32, uint8));
  EXPECT_TRUE(can_cast(DType::kBool, int32));
  EXPECT_FALSE(can_cast(float32, int64));
  EXPECT_FALSE(can_cast(int64, DType::kBool));
}

TEST(Special, FrexpGivesPartsWhoseProductIsX) {
  const Tensor x = tensor({1.5, -6.0, 0.0, 1e-310, kInfinity}, {.dtype = float64});
  const FrexpResult parts = frexp(x);
  EXPECT_EQ(parts.exponent.dtype(), int32);
  EXPECT_EQ(parts.exponent.to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 0, -1029, 0}));
  EXPECT_EQ(parts.mantissa.to_vector<double>()[1], -0.75);
  EXPECT_EQ(parts.mantissa.to_vector<double>()[4], kInfinity);
  EXPECT_THROW(frexp(tensor({1, 2})), InvalidArgument);
}

// PyTorch's gradients: infinite at the ends of logit, 0 where eps replaces the input, and 0 where
// the divisor of sinc's is too small.
TEST(Special, GradientsAtTheEndsAreNoNan) {
  const auto grad_of = [](const std::vector<double>& at, const auto& f, DType dtype) {
    const Tensor x = tensor(at, {.dtype = dtype}).requires_grad_();
    f(x).sum().backward();
    return x.grad().to_vector<double>();
  };
  const auto plain = [](const Tensor& x) { return logit(x); };
  const std::vector<double> ends{0, 1, -0.0, 0.5};
  for (const DType dtype : {float64, float32, float16})
    EXPECT_EQ(grad_of(ends, plain, dtype),
              (std::vector<double>{kInfinity, kInfinity, kInfinity, 4}));
  const auto bounded = [](const Tensor& x) { return logit(x, {.eps = 0.1}); };
  EXPECT_EQ(grad_of(ends, bounded, float64), (std::vector<double>{0, 0, 0, 4}));
  const auto wave = [](const Tensor& x) { return sinc(x); };
  EXPECT_EQ(grad_of({1e-25, 1e-30, 1e-39}, wave, float32), (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace flow
