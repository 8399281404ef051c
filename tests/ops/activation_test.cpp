#include "ops/elementwise/activation.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor points() {
  return tensor({-4.0, -1.0, 0.5, 7.0}, {.dtype = float64, .requires_grad = true});
}

void expect_values(const Tensor& y, const Doubles& wanted) {
  const Doubles values = y.to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(values[i], wanted[i], 1e-14) << i;
}

// Values of PyTorch 2.
TEST(Activation, ValuesAreThoseOfTheFormulas) {
  const Tensor x = points();

  expect_values(celu(x, {.alpha = 2}), {-1.7293294335267746, -0.7869386805747332, 0.5, 7});
  expect_values(selu(x),
                {-1.7258986281898945, -1.1113307378125625, 0.5253504936777402, 7.354906911488364});
  expect_values(
      mish(x), {-0.07259174079202535, -0.30340146137410895, 0.3752452113048951, 6.999988379809741});
  expect_values(hardswish(x), {0, -1.0 / 3, 0.2916666666666667, 7});
  expect_values(hardsigmoid(x), {0, 1.0 / 3, 0.5833333333333334, 1});
  expect_values(hardtanh(x), {-1, -1, 0.5, 1});
  expect_values(relu6(x), {0, 0, 0.5, 6});
  expect_values(softsign(x), {-0.8, -0.5, 1.0 / 3, 0.875});
  expect_values(logsigmoid(x), {-4.0181499279178094, -1.3132616875182228, -0.4740769841801067,
                                -0.0009114664537742447});
}

TEST(Activation, SlopesAreThoseOfTheFormulas) {
  const auto slope = [](Tensor (*f)(const TensorArg&)) {
    const Tensor x = points();
    sum(f(x)).backward();
    return x.grad();
  };

  expect_values(slope(mish),
                {-0.053773209793480325, 0.059216755877395, 0.8864243753577272, 1.0000215591608892});
  expect_values(slope(hardswish), {0, 1.0 / 6, 2.0 / 3, 1});
  expect_values(slope(hardsigmoid), {0, 1.F / 6.F, 1.F / 6.F, 0});  // rounded, as in PyTorch
  expect_values(slope(softsign), {0.04, 0.25, 4.0 / 9, 1.0 / 64});
}

TEST(Activation, KinksHaveNoSlope) {
  const Tensor x = tensor({-3.f, 0.f, 3.f, 6.f}, {.requires_grad = true});

  sum(relu6(x)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0, 1, 0}));
  x.grad().zero_();
  sum(hardsigmoid(x)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 1.f / 6, 0, 0}));
  x.grad().zero_();
  sum(hardswish(x)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0.5, 1, 1}));
}

TEST(Activation, InfinitiesReachTheLimits) {
  const Tensor x = tensor({-kInf, kInf});

  EXPECT_EQ(celu(x, {.alpha = 3}).to_vector<float>(), Floats({-3, kInf}));
  EXPECT_EQ(hardsigmoid(x).to_vector<float>(), Floats({0, 1}));
  EXPECT_EQ(hardtanh(x, {.min_val = -2, .max_val = 5}).to_vector<float>(), Floats({-2, 5}));
  EXPECT_EQ(logsigmoid(x).to_vector<float>(), Floats({-kInf, 0}));
  EXPECT_EQ(logsigmoid(tensor({-1000.f})).item<float>(), -1000);
  EXPECT_EQ(mish(tensor({-1000.f, kInf})).to_vector<float>(), Floats({0, kInf}));
}

TEST(Activation, NanStaysNan) {
  const Tensor x = tensor({kNan});
  for (const auto f : {selu, mish, hardswish, hardsigmoid, relu6, softsign, logsigmoid}) {
    EXPECT_TRUE(std::isnan(f(x).item<float>()));
  }
  EXPECT_TRUE(std::isnan(celu(x).item<float>()));
  EXPECT_TRUE(std::isnan(prelu(x, ones({1})).item<float>()));
}

TEST(Activation, PreluTakesOneSlopeOrOneForEachChannel) {
  const Tensor x = tensor({{{-1.f, 2.f}, {-3.f, -4.f}}});

  EXPECT_EQ(prelu(x, tensor({0.25f})).to_vector<float>(), Floats({-0.25, 2, -0.75, -1}));
  EXPECT_EQ(prelu(x, tensor(0.25f)).to_vector<float>(), Floats({-0.25, 2, -0.75, -1}));
  EXPECT_EQ(prelu(x, tensor({0.5f, 2.f})).to_vector<float>(), Floats({-0.5, 2, -6, -8}));
  EXPECT_EQ(prelu(tensor({-2.f, 3.f}), tensor({0.5f})).to_vector<float>(), Floats({-1, 3}));
  EXPECT_EQ(prelu(tensor(-2.f), tensor({0.5f})).shape(), Shape({}));
  EXPECT_THROW(prelu(x, ones({3})), InvalidArgument);
  EXPECT_THROW(prelu(x, ones({2, 1})), InvalidArgument);
  EXPECT_THROW(prelu(ones({2}), ones({2})), InvalidArgument);
}

TEST(Activation, PreluSlopesGatherTheGradientOfTheirChannel) {
  const Tensor x = tensor({{-1.f, 2.f}, {-3.f, -4.f}});
  const Tensor slopes = tensor({0.5f, 2.f}, {.requires_grad = true});

  sum(prelu(x, slopes)).backward();

  EXPECT_EQ(slopes.grad().to_vector<float>(), Floats({-4, -4}));
}

TEST(Activation, GluGatesTheFirstHalf) {
  const Tensor x = tensor({{1.f, 2.f, 0.f, 1000.f}});

  EXPECT_EQ(glu(x).to_vector<float>(), Floats({0.5, 2}));
  EXPECT_EQ(glu(x.t(), 0).shape(), Shape({2, 1}));
  EXPECT_THROW(glu(x, 0), InvalidArgument);
  EXPECT_THROW(glu(x, 2), InvalidArgument);
}

TEST(Activation, WrongArgumentsAreRefused) {
  const Tensor x = ones({2});

  EXPECT_THROW(celu(x, {.alpha = 0}), InvalidArgument);
  EXPECT_THROW(hardtanh(x, {.min_val = 1, .max_val = 0}), InvalidArgument);
  EXPECT_THROW(mish(tensor({1})), InvalidArgument);
}

}  // namespace
}  // namespace flow
