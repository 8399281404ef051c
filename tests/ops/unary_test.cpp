#include "ops/elementwise/unary.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/where.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Unary, RoundTakesHalvesToTheEvenNeighbour) {
  const Tensor x = tensor({-1.5f, -0.5f, 0.5f, 1.5f, 2.5f});

  EXPECT_EQ(round(x).to_vector<float>(), Floats({-2, 0, 0, 2, 2}));
  EXPECT_EQ(floor(x).to_vector<float>(), Floats({-2, -1, 0, 1, 2}));
  EXPECT_EQ(ceil(x).to_vector<float>(), Floats({-1, 0, 1, 2, 3}));
  EXPECT_EQ(floor(tensor({3})).dtype(), int64);
}

TEST(Unary, SignsAndMagnitudes) {
  EXPECT_EQ(abs(tensor({-2, 3})).to_vector<int64_t>(), Ints64({2, 3}));
  EXPECT_EQ(sign(tensor({-2.f, 0.f, 3.f, kNan})).to_vector<float>(), Floats({-1, 0, 1, 0}));
  EXPECT_EQ((-tensor({1.f, -2.f})).to_vector<float>(), Floats({-1, 2}));
  EXPECT_EQ(square(tensor({-3})).to_vector<int64_t>(), Ints64({9}));
  EXPECT_THROW(neg(tensor({true})), InvalidArgument);
}

TEST(Unary, IntegersBecomeFloatsWhereTheResultIsNoInteger) {
  EXPECT_EQ(exp(tensor({0})).dtype(), float32);
  EXPECT_EQ(sqrt(tensor({4, 9})).to_vector<float>(), Floats({2, 3}));
  EXPECT_EQ(sigmoid(tensor({true})).dtype(), float32);
  EXPECT_EQ(relu(tensor({-1, 2})).to_vector<int64_t>(), Ints64({0, 2}));
  EXPECT_THROW(gelu(tensor({1})), InvalidArgument);
}

TEST(Unary, EndsOfTheRangeAreExact) {
  EXPECT_EQ(exp(tensor({-kInf, 0.f, kInf, 200.f})).to_vector<float>(), Floats({0, 1, kInf, kInf}));
  EXPECT_EQ(log(tensor({0.f, 1.f, kInf})).to_vector<float>(), Floats({-kInf, 0, kInf}));
  EXPECT_TRUE(std::isnan(log(tensor({-1.f})).item<float>()));
  EXPECT_EQ(tanh(tensor({-kInf, -50.f, 0.f, kInf})).to_vector<float>(), Floats({-1, -1, 0, 1}));
  EXPECT_EQ(sigmoid(tensor({-kInf, 0.f, kInf})).to_vector<float>(), Floats({0, 0.5, 1}));
  EXPECT_EQ(rsqrt(tensor({0.f, 4.f})).to_vector<float>(), Floats({kInf, 0.5}));
  EXPECT_EQ(reciprocal(tensor({4.f})).item<float>(), 0.25);
}

TEST(Unary, NanStaysNan) {
  const Tensor x = tensor({kNan});
  for (const auto f : {exp, expm1, log, log1p, sqrt, rsqrt, reciprocal, sin, cos, tanh, erf,
                       sigmoid, relu, silu, neg, abs, square, floor, ceil}) {
    EXPECT_TRUE(std::isnan(f(x).item<float>()));
  }
  EXPECT_TRUE(std::isnan(gelu(x).item<float>()));
  EXPECT_TRUE(std::isnan(gelu(x, {.approximate = "tanh"}).item<float>()));
  EXPECT_TRUE(std::isnan(elu(x).item<float>()));
  EXPECT_TRUE(std::isnan(leaky_relu(x).item<float>()));
  EXPECT_TRUE(std::isnan(softplus(x).item<float>()));
  EXPECT_TRUE(std::isnan(clamp(x, {.min = 0, .max = 1}).item<float>()));
}

// Values of PyTorch 2.
TEST(Unary, ActivationsHaveTheirReferenceValues) {
  const Tensor x = tensor({-1.0, 0.5}, {.dtype = float64});
  const auto expect = [&](const Tensor& y, double first, double second) {
    EXPECT_NEAR(y.to_vector<double>()[0], first, 1e-12);
    EXPECT_NEAR(y.to_vector<double>()[1], second, 1e-12);
  };

  expect(gelu(x), -0.15865525393145707, 0.34573123063700656);
  expect(gelu(x, {.approximate = "tanh"}), -0.15880800939172324, 0.34571400982514394);
  expect(silu(x), -0.2689414213699951, 0.3112296656009273);
  expect(elu(x), std::expm1(-1.0), 0.5);
  expect(elu(x, {.alpha = 2}), 2 * std::expm1(-1.0), 0.5);
  expect(leaky_relu(x), -0.01, 0.5);
  expect(softplus(x), std::log1p(std::exp(-1.0)), std::log1p(std::exp(0.5)));
  expect(softplus(x, {.beta = 2, .threshold = 0.5}), std::log1p(std::exp(-2.0)) / 2, 0.5);
  EXPECT_THROW(gelu(x, {.approximate = "fast"}), InvalidArgument);
  EXPECT_THROW(softplus(x, {.beta = 0}), InvalidArgument);
}

TEST(Unary, PredicatesGiveBools) {
  const Tensor x = tensor({kNan, kInf, -kInf, 1.f, 0.f});

  EXPECT_EQ(isnan(x).to_vector<int64_t>(), Ints64({1, 0, 0, 0, 0}));
  EXPECT_EQ(isinf(x).to_vector<int64_t>(), Ints64({0, 1, 1, 0, 0}));
  EXPECT_EQ(isfinite(x).to_vector<int64_t>(), Ints64({0, 0, 0, 1, 1}));
  EXPECT_EQ(logical_not(x).to_vector<int64_t>(), Ints64({0, 0, 0, 0, 1}));
  EXPECT_EQ(isfinite(tensor({1})).dtype(), bool_);
}

TEST(Unary, InPlaceFormsWriteTheirTensor) {
  const Tensor x = tensor({{-1.f, 2.f}, {3.f, -4.f}});

  relu_(x.t());
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 2, 3, 0}));
  clamp_(x, {.max = 2.5});
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 2, 2.5, 0}));
  masked_fill_(x, tensor({true, false}), 9);
  EXPECT_EQ(x.to_vector<float>(), Floats({9, 2, 9, 0}));
}

TEST(Unary, ReluHasNoGradientAtZero) {
  const Tensor x = tensor({-1.f, 0.f, 2.f}, {.requires_grad = true});

  sum(relu(x)).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0, 1}));
}

TEST(Unary, StepFunctionsHaveTheGradientZero) {
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [](const Tensor& x) { return floor(x); },          [](const Tensor& x) { return ceil(x); },
      [](const Tensor& x) { return round(x); },          [](const Tensor& x) { return trunc(x); },
      [](const Tensor& x) { return sign(x); },           [](const Tensor& x) { return x.pow(0); },
      [](const Tensor& x) { return float_power(x, 0); },
  };

  for (size_t i = 0; i < functions.size(); ++i) {
    const Tensor x = tensor({-1.5f, 0.25f, kInf}).requires_grad_();
    sum(functions[i](x)).backward();
    ASSERT_TRUE(x.grad().defined()) << i;
    EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0, 0})) << i;
    EXPECT_NO_THROW(grad({sum(functions[i](x))}, {x})) << i;
  }
}

TEST(Unary, ManyElementsMatchFewOnes) {
  const Tensor x = linspace(-4, 4, 100003);
  const Floats all = tanh(x).to_vector<float>();

  for (const int64_t i : {int64_t{0}, int64_t{16383}, int64_t{16384}, int64_t{100002}}) {
    EXPECT_EQ(all[static_cast<size_t>(i)], tanh(x.narrow(0, i, 1)).item<float>()) << i;
  }
}

TEST(Unary, NegationTurnsPartialExtrema) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor x = ones({2}, {.placement = both, .sbp = sbp::partial_max});

    EXPECT_EQ(neg(x).sbp(), NdSbp(sbp::partial_min));
    EXPECT_EQ(relu(x).sbp(), NdSbp(sbp::partial_max));
    EXPECT_EQ(neg(ones({2}, {.placement = both, .sbp = sbp::partial_sum})).sbp(),
              NdSbp(sbp::partial_sum));
  });
}

TEST(Where, ChoosesElementwiseAndPromotes) {
  const Tensor mask = tensor({true, false, true});

  EXPECT_EQ(where(mask, tensor({1, 2, 3}), tensor({0.5f})).to_vector<float>(), Floats({1, 0.5, 3}));
  EXPECT_EQ(where(mask, tensor({1.f, 2.f, 3.f}), 0).to_vector<float>(), Floats({1, 0, 3}));
  EXPECT_EQ(where(mask, 7, tensor({1.f, 2.f, 3.f})).to_vector<float>(), Floats({7, 2, 7}));
  EXPECT_THROW(where(tensor({1, 0, 1}), ones({3}), ones({3})), InvalidArgument);
}

TEST(Where, MaskedFillKeepsTheDtype) {
  const Tensor mask = tensor({{true}, {false}});

  EXPECT_EQ(masked_fill(tensor({1, 2}), mask, 9).to_vector<int64_t>(), Ints64({9, 9, 1, 2}));
  EXPECT_EQ(masked_fill(tensor({1, 2}), mask, -2.5).to_vector<int64_t>(), Ints64({-2, -2, 1, 2}));
  EXPECT_THROW(masked_fill(tensor({1, 2}), mask, NAN), InvalidArgument);
  EXPECT_THROW(masked_fill_(ones({2}), mask, 0), InvalidArgument);
}

TEST(Where, ClampPromotesAllBoundsTogether) {
  const Tensor x = tensor({4, -2}), number = tensor(1.5f).to(float16);
  const Tensor bounds = tensor({2.5f, 3.f}).to(bfloat16);

  // Tensors with dims decide within a category: the number does not widen the result.
  EXPECT_EQ(clamp(x, number, bounds).dtype(), bfloat16);
  EXPECT_EQ(clamp(x, bounds, number).dtype(), bfloat16);
  EXPECT_EQ(clamp(x, number, bounds).to(float32).to_vector<float>(), Floats({2.5, 1.5}));
}

TEST(Where, ClampTakesEitherBound) {
  const Tensor x = tensor({-2.f, 0.f, 2.f}, {.requires_grad = true});

  EXPECT_EQ(clamp(x, {.min = -1}).to_vector<float>(), Floats({-1, 0, 2}));
  EXPECT_EQ(clamp(x, {.min = 1, .max = 0}).to_vector<float>(), Floats({0, 0, 0}));
  EXPECT_EQ(clamp(tensor({1, 5}), {.max = 2.5}).dtype(), float32);
  EXPECT_THROW(clamp(x, {}), InvalidArgument);
  sum(clamp(x, {.min = -1, .max = 2})).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 1, 0}));  // at a bound 0, as in PyTorch
}

TEST(Unary, RoundTakesDecimals) {
  const Tensor x = tensor({1.005, -2.345678, 123.456}, {.dtype = float64});

  EXPECT_EQ(round(x, {.decimals = 2}).to_vector<double>(),
            std::vector<double>({1.0, -2.35, 123.46}));
  EXPECT_EQ(round(tensor({125.f, 135.f, -15.f}), {.decimals = -1}).to_vector<float>(),
            Floats({120, 140, -20}));
  EXPECT_EQ(round(tensor({15}), {.decimals = 0}).to_vector<int64_t>(), Ints64({15}));
  EXPECT_THROW(round(tensor({15}), {.decimals = -1}), InvalidArgument);
}

TEST(Where, TwoNumbersGiveTheirCategory) {
  const Tensor mask = tensor({true, false});

  EXPECT_EQ(where(mask, 1, 2).to_vector<int64_t>(), Ints64({1, 2}));
  EXPECT_EQ(where(mask, 1, 0.5).to_vector<float>(), Floats({1, 0.5}));
  EXPECT_EQ(where(mask, true, false).dtype(), bool_);
}

TEST(Where, MaskedFillTakesATensorWithoutDims) {
  const Tensor value = tensor(5.f, {.requires_grad = true});
  const Tensor y = masked_fill(ones({2, 2}), tensor({true, false}), value);

  EXPECT_EQ(y.to_vector<float>(), Floats({5, 1, 5, 1}));
  sum(y).backward();
  EXPECT_EQ(value.grad().item<float>(), 2);
  EXPECT_THROW(masked_fill(ones({2}), tensor({true, false}), ones({2})), InvalidArgument);
}

TEST(Where, ClampTakesTensors) {
  const Tensor x = tensor({-2.f, 0.f, 2.f, kNan}, {.requires_grad = true});
  const Tensor low = tensor({-1.f, 0.f, 3.f, 0.f}, {.requires_grad = true});
  const Tensor y = clamp(x, low, tensor(1.f));

  EXPECT_EQ(y.narrow(0, 0, 3).to_vector<float>(), Floats({-1, 0, 1}));
  EXPECT_TRUE(std::isnan(y.narrow(0, 3, 1).item<float>()));
  EXPECT_TRUE(std::isnan(clamp(ones({1}), tensor({kNan}), Tensor()).item<float>()));
  sum(y).backward();
  // A value shares the gradient with a bound that it equals, and with one if it is NaN.
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0.5, 0, 1}));
  EXPECT_EQ(low.grad().to_vector<float>(), Floats({1, 0.5, 0, 1}));
  EXPECT_EQ(clip(tensor({-2.f}), {.min = -1}).item<float>(), -1);
  EXPECT_THROW(clamp(x, Tensor(), Tensor()), InvalidArgument);
}

TEST(Unary, LogarithmsAndPowersOfOtherBases) {
  EXPECT_EQ(log2(tensor({8.0, 0.5})).to_vector<float>(), (std::vector<float>{3, -1}));
  EXPECT_EQ(log10(tensor({1000.0, 0.1}, {.dtype = float64})).to_vector<double>(),
            (std::vector<double>{3, -1}));
  EXPECT_EQ(exp2(tensor({3, -1})).to_vector<float>(), (std::vector<float>{8, 0.5}));
}

TEST(Unary, TruncatingKeepsTheSign) {
  EXPECT_EQ(trunc(tensor({-1.7, 1.7})).to_vector<float>(), (std::vector<float>{-1, 1}));
  EXPECT_EQ(trunc(tensor({-3, 4})).to_vector<int64_t>(), (std::vector<int64_t>{-3, 4}));
  EXPECT_EQ(frac(tensor({-1.75, 1.25})).to_vector<float>(), (std::vector<float>{-0.75, 0.25}));
}

TEST(Unary, SincAndErfcAreExactAtTheirEnds) {
  EXPECT_EQ(sinc(tensor({0.0, 0.5}, {.dtype = float64})).to_vector<double>(),
            (std::vector<double>{1, 0.6366197723675814}));
  EXPECT_DOUBLE_EQ(erfc(tensor(6.0, {.dtype = float64})).item(), 2.1519736712498913e-17);
  const Tensor x = tensor({0.0}).requires_grad_();
  sinc(x).sum().backward();
  EXPECT_EQ(x.grad().item(), 0);
}

TEST(Unary, NanToNumReplacesWhatIsNoNumber) {
  const Tensor x = tensor(std::vector<float>{NAN, kInf, -kInf, 2}, {4}).requires_grad_();
  constexpr float kMax = std::numeric_limits<float>::max();
  const Tensor y = nan_to_num(x);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, kMax, -kMax, 2}));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0, 0, 1}));
  const Tensor given = nan_to_num(x, {.nan = 1, .posinf = 2, .neginf = 3});
  EXPECT_EQ(given.to_vector<float>(), (std::vector<float>{1, 2, 3, 2}));
  EXPECT_EQ(nan_to_num(x.detach().to(float16)).to_vector<float>(),
            (std::vector<float>{0, 65504, -65504, 2}));
  EXPECT_EQ(nan_to_num(tensor({1, 2})).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
}

// 300 is not a uint8 value, but it is an upper bound for all of them.
TEST(Where, BoundsOfClampMayLieOutsideTheDtype) {
  const Tensor x = tensor({0, 100, 255}, {.dtype = uint8});

  EXPECT_EQ(clamp(x, {.min = -1, .max = 300}).to_vector<int64_t>(), Ints64({0, 100, 255}));
  EXPECT_EQ(clamp(x, {.min = 7, .max = 300}).to_vector<int64_t>(), Ints64({7, 100, 255}));
  EXPECT_THROW(clamp(x, {.min = 300}), InvalidArgument);
  EXPECT_THROW(clamp(x, {.max = -1}), InvalidArgument);
}

TEST(Unary, TheGradientOfReluAtNanIsThatOfItsResult) {
  const Tensor x = (zeros({19}) + kNan).requires_grad_();
  relu(x).backward(arange(19, {.dtype = float32}));

  EXPECT_EQ(x.grad().to_vector<float>(), arange(19, {.dtype = float32}).to_vector<float>());
}

TEST(Unary, DecimalsOfSixteenBitsAreRoundedInFloat32) {
  const Tensor x = tensor({100.123F, -97.375F}).to(float16);

  EXPECT_EQ(round(x, {.decimals = 3}).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(round(x, {.decimals = 3}).dtype(), float16);
  EXPECT_EQ(round(x, {.decimals = -1}).to_vector<float>(), (std::vector<float>{100, -100}));
}

}  // namespace
}  // namespace flow
