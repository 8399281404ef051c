#include "ops/elementwise/binary.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/ternary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Binary, OperatorsBroadcast) {
  const Tensor rows = tensor({{1.f}, {2.f}});
  const Tensor columns = tensor({10.f, 20.f, 30.f});

  EXPECT_EQ((rows + columns).to_vector<float>(), Floats({11, 21, 31, 12, 22, 32}));
  EXPECT_EQ((rows - columns).shape(), Shape({2, 3}));
  EXPECT_EQ((rows * columns).to_vector<float>(), Floats({10, 20, 30, 20, 40, 60}));
  EXPECT_EQ((columns / rows).to_vector<float>(), Floats({10, 20, 30, 5, 10, 15}));
  EXPECT_THROW(rows + ones({3, 3}), InvalidArgument);
}

TEST(Binary, NumbersMayStandOnEitherSide) {
  const Tensor x = tensor({1.f, 2.f});

  EXPECT_EQ((x + 1).to_vector<float>(), Floats({2, 3}));
  EXPECT_EQ((1 + x).to_vector<float>(), Floats({2, 3}));
  EXPECT_EQ((1 - x).to_vector<float>(), Floats({0, -1}));
  EXPECT_EQ((x - 1).to_vector<float>(), Floats({0, 1}));
  EXPECT_EQ((2 * x).to_vector<float>(), Floats({2, 4}));
  EXPECT_EQ((2 / x).to_vector<float>(), Floats({2, 1}));
  EXPECT_EQ((x / 2).to_vector<float>(), Floats({0.5, 1}));
}

TEST(Binary, PromotionFollowsPyTorch) {
  const Tensor ints = tensor({1, 2});
  const Tensor halves = ones({2}, {.dtype = float16});
  const Tensor doubles = ones({2}, {.dtype = float64});
  const Tensor zero_dim = tensor(2.5, {.dtype = float64});

  EXPECT_EQ((ints + halves).dtype(), float16);
  EXPECT_EQ((halves + doubles).dtype(), float64);
  EXPECT_EQ((halves + ones({2}, {.dtype = bfloat16})).dtype(), float32);
  EXPECT_EQ((halves + zero_dim).dtype(), float16);
  EXPECT_EQ((ints + zero_dim).dtype(), float64);
  EXPECT_EQ((ints + 1).dtype(), int64);
  EXPECT_EQ((ints + 1.5).dtype(), float32);
}

TEST(Binary, AlphaScalesTheSecondOperand) {
  const Tensor x = tensor({1.f, 2.f});
  const Tensor y = tensor({10.f, 20.f});

  EXPECT_EQ(add(x, y, {.alpha = 0.5}).to_vector<float>(), Floats({6, 12}));
  EXPECT_EQ(sub(x, y, {.alpha = 2}).to_vector<float>(), Floats({-19, -38}));
  EXPECT_EQ(add(tensor({1}), tensor({2}), {.alpha = 3}).to_vector<int64_t>(), Ints64({7}));
  EXPECT_THROW(add(tensor({1}), tensor({2}), {.alpha = 0.5}), InvalidArgument);
  const Tensor bytes = tensor(std::vector<uint8_t>{1, 250});
  EXPECT_EQ(add(bytes, bytes, {.alpha = -1}).to_vector<int64_t>(), Ints64({0, 0}));
  EXPECT_EQ(addcmul(bytes, bytes, bytes, {.value = -1}).to_vector<int64_t>(), Ints64({0, 214}));
}

TEST(Binary, AlphaScalesANumber) {
  const Tensor ints = tensor({1, 5});

  EXPECT_EQ(add(ints, 2, {.alpha = 3}).to_vector<int64_t>(), Ints64({7, 11}));
  EXPECT_EQ(sub(ints, 2, {.alpha = -3}).to_vector<int64_t>(), Ints64({7, 11}));
  EXPECT_EQ(add(ints, 1.5, {.alpha = 0.5}).to_vector<float>(), Floats({1.75, 5.75}));
  EXPECT_EQ(sub(tensor({1.f}), 3, {.alpha = 0.5}).to_vector<float>(), Floats({-0.5}));
  EXPECT_THROW(add(ints, 3, {.alpha = 0.5}), InvalidArgument);
  EXPECT_THROW(sub(ints, 3, {.alpha = 0.5}), InvalidArgument);
}

TEST(Binary, DivisionOfIntegersIsTrueUnlessRounded) {
  const Tensor a = tensor({7, -7});
  const Tensor b = tensor({2, 2});

  EXPECT_EQ(div(a, b).to_vector<float>(), Floats({3.5, -3.5}));
  EXPECT_EQ(div(a, b, {.rounding_mode = "trunc"}).to_vector<int64_t>(), Ints64({3, -3}));
  EXPECT_EQ(div(a, b, {.rounding_mode = "floor"}).to_vector<int64_t>(), Ints64({3, -4}));
  EXPECT_EQ(floor_divide(tensor({-7.f}), 2).to_vector<float>(), Floats({-4}));
  EXPECT_THROW(div(a, b, {.rounding_mode = "up"}), InvalidArgument);
}

TEST(Binary, RemaindersTakeTheSignOfDivisorOrDividend) {
  const Tensor a = tensor({7, -7, 7, -7});
  const Tensor b = tensor({3, 3, -3, -3});

  EXPECT_EQ(remainder(a, b).to_vector<int64_t>(), Ints64({1, 2, -2, -1}));
  EXPECT_EQ(fmod(a, b).to_vector<int64_t>(), Ints64({1, -1, 1, -1}));
  EXPECT_EQ(remainder(tensor({-1.f}), 3).to_vector<float>(), Floats({2}));
}

TEST(Binary, PercentIsTheRemainderOfPython) {
  const Tensor x = tensor({-5, 5});

  EXPECT_EQ((x % 3).to_vector<int64_t>(), Ints64({1, 2}));
  EXPECT_EQ((x % tensor({-3, -3})).to_vector<int64_t>(), Ints64({-2, -1}));
}

TEST(Binary, IntegerDivisionByZeroIsAnError) {
  EXPECT_THROW(floor_divide(tensor({1}), tensor({0})), InvalidArgument);
  EXPECT_THROW(remainder(tensor({1}), 0), InvalidArgument);
  EXPECT_EQ(floor_divide(tensor(std::vector<int64_t>{INT64_MIN}, {1}), -1).to_vector<int64_t>(),
            Ints64({INT64_MIN}));
  EXPECT_EQ((tensor({1.f}) / 0).to_vector<float>(), Floats({kInf}));
}

TEST(Binary, IntegersWrapAroundAndBoolsSaturate) {
  const Tensor top = tensor(std::vector<int32_t>{INT32_MAX}, {1});

  EXPECT_EQ((top + 1).to_vector<int32_t>(), std::vector<int32_t>({INT32_MIN}));
  const Tensor yes = tensor({true}), no = tensor({false});
  EXPECT_EQ((yes + yes).to_vector<int64_t>(), Ints64({1}));
  EXPECT_EQ((yes * no).dtype(), bool_);
  EXPECT_THROW(yes - no, InvalidArgument);
}

TEST(Binary, PowersFollowPyTorch) {
  EXPECT_EQ(pow(tensor({2, -1, 3}), 3).to_vector<int64_t>(), Ints64({8, -1, 27}));
  EXPECT_EQ(pow(tensor({2, 1, -1}), tensor({-1, -5, -3})).to_vector<int64_t>(), Ints64({0, 1, -1}));
  EXPECT_THROW(pow(tensor({2}), -1), InvalidArgument);
  EXPECT_EQ(pow(2, tensor({1.f, 3.f})).to_vector<float>(), Floats({2, 8}));
  for (const double exponent : {0.0, 2.0, 3.0, 0.5, -1.0, 1.5}) {
    const float expected = static_cast<float>(std::pow(2.25, exponent));
    EXPECT_FLOAT_EQ(pow(tensor({2.25f}), exponent).item<float>(), expected) << exponent;
  }
}

TEST(Binary, ExtremaPropagateNan) {
  const Tensor a = tensor({1.f, kNan, 2.f});
  const Tensor b = tensor({3.f, 0.f, kNan});

  const Floats larger = maximum(a, b).to_vector<float>();
  const Floats smaller = minimum(a, b).to_vector<float>();

  EXPECT_EQ(maximum(tensor({1, 5}), 2.5).to_vector<float>(), Floats({2.5, 5}));
  EXPECT_EQ(minimum(tensor({1, 5}), 2).dtype(), int64);
  EXPECT_EQ(larger[0], 3);
  EXPECT_EQ(smaller[0], 1);
  for (const float value : {larger[1], larger[2], smaller[1], smaller[2]})
    EXPECT_TRUE(std::isnan(value));
}

TEST(Binary, TiesShareTheGradientOfAnExtremum) {
  const Tensor a = tensor({1.f, 2.f, 3.f}, {.requires_grad = true});
  const Tensor b = tensor({2.f, 2.f, 2.f}, {.requires_grad = true});

  sum(maximum(a, b)).backward();

  EXPECT_EQ(a.grad().to_vector<float>(), Floats({0, 0.5, 1}));
  EXPECT_EQ(b.grad().to_vector<float>(), Floats({1, 0.5, 0}));
}

TEST(Binary, PowersOfZeroHaveFiniteGradients) {
  const Tensor a = tensor({0.f, 0.f}, {.requires_grad = true});
  const Tensor b = tensor({0.f, 2.f}, {.requires_grad = true});

  sum(pow(a, b)).backward();

  EXPECT_EQ(a.grad().to_vector<float>(), Floats({0, 0}));
  EXPECT_EQ(b.grad().to_vector<float>(), Floats({0, 0}));
}

TEST(Binary, BroadcastGradientsAreSummed) {
  const Tensor a = tensor({{1.f}, {2.f}}, {.requires_grad = true});
  const Tensor b = tensor({3.f, 4.f}, {.requires_grad = true});

  sum(a * b).backward();

  EXPECT_EQ(a.grad().shape(), Shape({2, 1}));
  EXPECT_EQ(a.grad().to_vector<float>(), Floats({7, 7}));
  EXPECT_EQ(b.grad().to_vector<float>(), Floats({3, 3}));
}

TEST(Binary, InPlaceFormsKeepHandleAndDtype) {
  Tensor x = tensor({1.f, 2.f});
  const Tensor alias = x;

  x += 1;
  x *= tensor({2.f, 3.f});
  x -= tensor({1, 1});
  x /= 2;
  x.add_(ones({2}), {.alpha = 0.5});

  EXPECT_EQ(alias.to_vector<float>(), Floats({2, 4.5}));
  Tensor half = ones({1}, {.dtype = float16});
  half += tensor({1.0}, {.dtype = float64});
  EXPECT_EQ(half.dtype(), float16);
  EXPECT_EQ(half.item<float>(), 2);
}

TEST(Binary, InPlaceResultsMustFit) {
  const Tensor ints = tensor({1, 2});

  EXPECT_THROW(ints.add_(0.5), InvalidArgument);
  EXPECT_THROW(ints.div_(2), InvalidArgument);
  EXPECT_THROW(ints.add_(tensor({0.5f, 1.f})), InvalidArgument);
  EXPECT_THROW(ones({2}).add_(ones({3, 2})), InvalidArgument);
  EXPECT_THROW(ones({1}).expand({3}).add_(1), InvalidArgument);
  EXPECT_EQ(ints.to_vector<int64_t>(), Ints64({1, 2}));
}

TEST(Binary, StridedOperandsAreReadInLogicalOrder) {
  const Tensor x = arange(6, {.dtype = float32}).reshape({2, 3});

  EXPECT_EQ((x.t() + x.t()).to_vector<float>(), Floats({0, 6, 2, 8, 4, 10}));
  EXPECT_EQ((x + x.t().contiguous().t()).to_vector<float>(), Floats({0, 2, 4, 6, 8, 10}));
  const Tensor target = zeros({3, 2}).t();
  target.add_(x);
  EXPECT_EQ(target.to_vector<float>(), x.to_vector<float>());
}

TEST(Compare, ComparisonsGiveBools) {
  const Tensor a = tensor({1.f, 2.f, kNan});
  const Tensor b = tensor({2.f, 2.f, 2.f});

  EXPECT_EQ(lt(a, b).dtype(), bool_);
  EXPECT_EQ(lt(a, b).to_vector<int64_t>(), Ints64({1, 0, 0}));
  EXPECT_EQ(le(a, b).to_vector<int64_t>(), Ints64({1, 1, 0}));
  EXPECT_EQ(gt(b, a).to_vector<int64_t>(), Ints64({1, 0, 0}));
  EXPECT_EQ(ge(b, a).to_vector<int64_t>(), Ints64({1, 1, 0}));
  EXPECT_EQ(eq(a, a).to_vector<int64_t>(), Ints64({1, 1, 0}));
  EXPECT_EQ(ne(a, a).to_vector<int64_t>(), Ints64({0, 0, 1}));
  EXPECT_EQ(gt(tensor({1, 2}), 1.5).to_vector<int64_t>(), Ints64({0, 1}));
}

// Truncated to 8 bits, 300 would be 44.
TEST(Compare, OperatorsAreTheFunctions) {
  const Tensor a = tensor({1.f, 2.f, 3.f}), b = tensor({{2.f}, {3.f}});
  const auto bools = [](const Tensor& x) { return x.to_vector<bool>(); };
  EXPECT_EQ(bools(a == b), bools(eq(a, b)));
  EXPECT_EQ(bools(a != b), bools(ne(a, b)));
  EXPECT_EQ(bools(a < b), bools(lt(a, b)));
  EXPECT_EQ(bools(a <= b), bools(le(a, b)));
  EXPECT_EQ(bools(a > b), bools(gt(a, b)));
  EXPECT_EQ(bools(a >= b), bools(ge(a, b)));

  // The number may stand on either side.
  using Bools = std::vector<bool>;
  EXPECT_EQ(bools(a == 2), Bools({false, true, false}));
  EXPECT_EQ(bools(2 == a), Bools({false, true, false}));
  EXPECT_EQ(bools(a != 2), Bools({true, false, true}));
  EXPECT_EQ(bools(2 != a), Bools({true, false, true}));
  EXPECT_EQ(bools(a < 2.5), Bools({true, true, false}));
  EXPECT_EQ(bools(2.5 < a), Bools({false, false, true}));
  EXPECT_EQ(bools(a <= 2), Bools({true, true, false}));
  EXPECT_EQ(bools(2 <= a), Bools({false, true, true}));
  EXPECT_EQ(bools(a > 2.5), Bools({false, false, true}));
  EXPECT_EQ(bools(2.5 > a), Bools({true, true, false}));
  EXPECT_EQ(bools(a >= 2), Bools({false, true, true}));
  EXPECT_EQ(bools(2 >= a), Bools({true, true, false}));
}

TEST(Compare, NumbersMayLieOutsideTheDtype) {
  const Tensor x = tensor({44, 100}, {.dtype = uint8});

  EXPECT_EQ(lt(x, 300).to_vector<bool>(), std::vector<bool>({true, true}));
  EXPECT_EQ(eq(x, 300).to_vector<bool>(), std::vector<bool>({false, false}));
  EXPECT_EQ(gt(x, -1).to_vector<bool>(), std::vector<bool>({true, true}));
  EXPECT_EQ(ge(tensor({7}, {.dtype = int32}), int64_t{1} << 32).to_vector<bool>(),
            std::vector<bool>({false}));
}

TEST(Compare, LogicCountsWhatIsNotZero) {
  const Tensor a = tensor({0.f, 0.f, 0.5f, kNan});
  const Tensor b = tensor({0, 3, 0, 3});

  EXPECT_EQ(logical_and(a, b).to_vector<int64_t>(), Ints64({0, 0, 0, 1}));
  EXPECT_EQ(logical_or(a, b).to_vector<int64_t>(), Ints64({0, 1, 1, 1}));
  EXPECT_EQ(logical_xor(a, b).to_vector<int64_t>(), Ints64({0, 1, 1, 0}));
}

TEST(Binary, PartialSumsPassThroughLinearOps) {
  run_ranks(2, [] {
    const TensorOptions partial{.placement = Placement("cpu", {0, 1}), .sbp = sbp::partial_sum};
    const TensorOptions whole{.placement = partial.placement, .sbp = sbp::broadcast};
    const Tensor x = ones({2}, partial), y = full({2}, 3.f, whole);

    EXPECT_EQ((x + x).sbp(), NdSbp(sbp::partial_sum));
    EXPECT_EQ((x / 2).sbp(), NdSbp(sbp::partial_sum));
    // Reduced where a whole operand joins, so that later uses need not.
    EXPECT_EQ((x * y).sbp(), NdSbp(sbp::broadcast));
    EXPECT_EQ((x * y + x).to_vector<float>(), Floats({4, 4}));
    EXPECT_EQ((x + y).to_vector<float>(), Floats({4, 4}));
  });
}

// 0.1 is 0.09998 in float16 and 0.1001 in bfloat16.
TEST(Compare, NumbersAreRoundedTo16Bits) {
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor x = full({1}, 0.1, {.dtype = dtype});

    EXPECT_TRUE(eq(x, 0.1).item<bool>() && ge(x, 0.1).item<bool>() && le(x, 0.1).item<bool>());
    EXPECT_FALSE(ne(x, 0.1).item<bool>() || lt(x, 0.1).item<bool>() || gt(x, 0.1).item<bool>());
    EXPECT_TRUE(eq(full({1}, 2049, {.dtype = dtype}), 2049).item<bool>());
    EXPECT_TRUE(lt(x, kInf).item<bool>());
  }
}

TEST(Binary, DivisorsOfRemaindersAreRoundedTo16Bits) {
  for (const DType dtype : {float16, bfloat16}) {
    const float rest = dtype == float16 ? 0x1p-12F : 0.09912109375F;
    const Tensor x = ones({1}, {.dtype = dtype});

    EXPECT_EQ(fmod(x, 0.1).item<float>(), rest);
    EXPECT_EQ(remainder(x, 0.1).item<float>(), rest);
    EXPECT_EQ(x.clone().fmod_(0.1).item<float>(), rest);
    EXPECT_EQ(x.clone().remainder_(0.1).item<float>(), rest);
    EXPECT_EQ(remainder(x, tensor(0.1, {.dtype = dtype})).item<float>(), rest);
  }
}

TEST(Binary, OperandsThatOnlySetTheStepHaveTheGradientZero) {
  const auto expect_zeros = [](const Tensor& y, const Tensor& x) {
    const Tensor dx = grad({sum(y)}, {x})[0];
    EXPECT_EQ(dx.to_vector<float>(), Floats(static_cast<size_t>(x.numel()), 0));
  };
  const Tensor a = tensor({{5.5f, -2.f}, {1.f, 3.f}}).requires_grad_();
  const Tensor b = tensor({2.f, 0.7f}).requires_grad_();

  for (const char* mode : {"floor", "trunc"}) {
    expect_zeros(div(a, b, {.rounding_mode = mode}), a);
    expect_zeros(div(a, b, {.rounding_mode = mode}), b);
    expect_zeros(div(a, 2, {.rounding_mode = mode}), a);
  }
  expect_zeros(copysign(a, b), b);
  expect_zeros(nextafter(a, b), b);
}

TEST(Compare, ClosenessAllowsRelativeAndAbsoluteDistance) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = tensor({1.f, 1.f, inf, inf, nan});
  const Tensor b = tensor({1.000009f, 1.1f, inf, -inf, nan});

  EXPECT_EQ(isclose(a, b).to_vector<int64_t>(), std::vector<int64_t>({1, 0, 1, 0, 0}));
  EXPECT_EQ(isclose(a, b, {.atol = 0.2, .equal_nan = true}).to_vector<int64_t>(),
            std::vector<int64_t>({1, 1, 1, 0, 1}));
  EXPECT_TRUE(allclose(tensor({1, 2}), tensor({1, 2})));
  EXPECT_FALSE(allclose(a, b));
}

TEST(Compare, ClosenessOfIntegersDoesNotWrapAround) {
  const auto is_near = [](int64_t a, int64_t b, DType dtype, const CloseOptions& options = {}) {
    return allclose(tensor(a).to(dtype), tensor(b).to(dtype), options);
  };
  const int64_t least = std::numeric_limits<int64_t>::lowest();
  const int64_t greatest = std::numeric_limits<int64_t>::max();

  EXPECT_FALSE(is_near(least, greatest, int64));
  EXPECT_TRUE(is_near(least, least, int64));
  EXPECT_FALSE(is_near(2147483647, -2147483647, int32, {.atol = 10}));
  EXPECT_FALSE(is_near(100, -100, int8, {.atol = 60}));
  EXPECT_TRUE(is_near(3, 5, uint8, {.atol = 3}));
  EXPECT_TRUE(is_near(3, 4, uint8, {.atol = 1}));
  EXPECT_TRUE(is_near(4, 3, uint8, {.atol = 1}));
  EXPECT_TRUE(is_near(100, 101, int32, {.rtol = 0.01}));
}

TEST(Compare, ClosenessOfBoolsReadsTheTolerances) {
  const Tensor yes = tensor(true);
  const Tensor no = tensor(false);

  EXPECT_FALSE(allclose(yes, no));
  EXPECT_TRUE(allclose(yes, no, {.atol = 2}));
  EXPECT_TRUE(allclose(no, yes, {.rtol = 2}));
  EXPECT_FALSE(allclose(yes, no, {.rtol = 2}));
}

TEST(Binary, LogarithmsOfSumsAndProductsKnowTheirEnds) {
  const auto pair = [](double a, double b) {
    return std::pair(tensor(a, {.dtype = float64}), tensor(b, {.dtype = float64}));
  };
  const auto [a, b] = pair(1000, 1000);
  EXPECT_DOUBLE_EQ(logaddexp(a, b).item(), 1000 + std::log(2));
  const auto [c, d] = pair(-kInf, -kInf);
  EXPECT_EQ(logaddexp(c, d).item(), -kInf);
  EXPECT_EQ(xlogy(tensor({0.0, 2.0}), tensor({0.0, 1.0})).to_vector<float>(),
            (std::vector<float>{0, 0}));
  EXPECT_TRUE(std::isnan(xlogy(tensor(0.0), NAN).item()));
  EXPECT_FLOAT_EQ(xlogy(tensor(3), 2).item<float>(), 3 * std::log(2.F));
  const auto [e, f] = pair(3e200, 4e200);
  EXPECT_DOUBLE_EQ(hypot(e, f).item(), 5e200);
}

TEST(Binary, TheGradientOfXlogyFitsInto16BitsIfTheQuotientDoesNot) {
  const Tensor a = tensor(Floats{1000}).to(float16);
  const Tensor b = tensor(Floats{0x1p-7F}).to(float16).requires_grad_();
  xlogy(a, b).backward(tensor(Floats{0x1p-4F}).to(float16));
  EXPECT_EQ(b.grad().to_vector<float>(), Floats{8000});
}

TEST(Binary, BoundsThatWrapAroundRaise) {
  const Tensor x = tensor({1, 250}).to(uint8);

  EXPECT_THROW(maximum(x, -1), InvalidArgument);
  EXPECT_THROW(minimum(x, 300), InvalidArgument);
  EXPECT_EQ(maximum(x, 2).to_vector<int64_t>(), Ints64({2, 250}));
  EXPECT_EQ(maximum(x, 1.5).to_vector<float>(), Floats({1.5, 250}));
}

// The number has no place in 16 bits, the result has. Values: PyTorch 2.15.
TEST(Binary, ATensorWithoutDimsKeepsItsValueNextTo16Bits) {
  const Tensor half = tensor(Floats{1000, 24}).to(float16);
  const Tensor count = ones({70000}, {.dtype = bool_}).sum();
  EXPECT_EQ((half / count).to_vector<float>(), (half / 70000).to_vector<float>());
  EXPECT_NEAR((half / count).to_vector<float>()[0], 0.0143, 2e-5);
  const Tensor small = tensor(Floats{1e-4F, 0.5F, -0.25F}).to(float16);
  const Tensor scaled = small * tensor(65536.F);
  EXPECT_EQ(scaled.dtype(), float16);
  EXPECT_EQ(scaled.to_vector<float>(), (small * 65536).to_vector<float>());
  EXPECT_EQ((tensor(65536.F) * small).to_vector<float>(), scaled.to_vector<float>());
  EXPECT_EQ((tensor(Floats{100, 200}).to(bfloat16) * tensor(1.003F)).to_vector<float>(),
            Floats({100.5, 201}));
  Tensor x = tensor(Floats{1000}).to(float16);
  x.div_(tensor(1e6F));
  EXPECT_NEAR(x.item(), 0.0010004, 1e-7);
  x.mul_(tensor(1e6F));
  EXPECT_NEAR(x.item(), 1000, 1);
}

TEST(Binary, TheGradientNextToATensorWithoutDimsIsThatOfANumber) {
  const Tensor x = tensor(Floats{1000}).to(float16).requires_grad_();
  (x / tensor(1e6F)).sum().backward();
  EXPECT_EQ(x.grad().dtype(), float16);
  EXPECT_NEAR(x.grad().item(), 1.01e-6, 1e-8);
}

}  // namespace
}  // namespace flow
