#include "ops/loss/loss.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/loss/ctc_loss.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/margin_loss.h"
#include "ops/norm/softmax.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(Loss, OfSquaresIsReducedAsAsked) {
  const Tensor x = tensor({1.f, 2.f, 4.f});
  const Tensor target = tensor({1.f, 4.f, 1.f});

  expect_values(mse_loss(x, target), {13.0 / 3});
  expect_values(mse_loss(x, target, {.reduction = "sum"}), {13});
  expect_values(mse_loss(x, target, {.reduction = "none"}), {0, 4, 9});
}

TEST(Loss, MeanGradientDividesByTheNumberOfElements) {
  const Tensor x = tensor({1.f, 2.f, 4.f, 0.f}).requires_grad_();
  const Tensor target = tensor({1.f, 4.f, 1.f, 0.f}).requires_grad_();

  mse_loss(x, target).backward();

  expect_values(x.grad(), {0, -1, 1.5, 0});
  expect_values(target.grad(), {0, 1, -1.5, 0});
}

TEST(Loss, L1HasNoGradientWhereAnElementIsNaN) {
  const Tensor x = tensor({std::nanf(""), 2.f, -1.f, 0.f}).requires_grad_();

  l1_loss(x, zeros({4}), {.reduction = "sum"}).backward();

  expect_values(x.grad(), {0, 1, -1, 0});
}

TEST(Loss, SomeHaveTheDtypeOfOneOperand) {
  const Tensor x = tensor({0.5, -1.0}), integers = tensor({1, 0});
  const Tensor narrow = cast(x, float16), wide = cast(x, float64);

  for (const char* reduction : {"mean", "none"}) {
    EXPECT_EQ(huber_loss(x, wide, {.reduction = reduction}).dtype(), float32);
    EXPECT_EQ(huber_loss(narrow, x, {.reduction = reduction}).dtype(), float16);
    EXPECT_EQ(huber_loss(x, integers, {.reduction = reduction}).dtype(), float32);
    EXPECT_EQ(soft_margin_loss(x, wide, {.reduction = reduction}).dtype(), float32);
    EXPECT_EQ(soft_margin_loss(integers, x, {.reduction = reduction}).dtype(), float32);
    EXPECT_EQ(binary_cross_entropy_with_logits(wide, x, {.reduction = reduction}).dtype(), float32);
    EXPECT_EQ(binary_cross_entropy_with_logits(
                  x, narrow, {.reduction = reduction, .pos_weight = tensor({2.0, 1.0})})
                  .dtype(),
              float16);
  }
  EXPECT_EQ(mse_loss(narrow, tensor(1.0)).dtype(), float32) << "broadcasting gives it dims";
  EXPECT_THROW(huber_loss(integers, x), InvalidArgument);
  EXPECT_THROW(binary_cross_entropy_with_logits(x, integers), InvalidArgument);
  const Tensor input = x.detach().requires_grad_();
  huber_loss(input, wide + 1, {.reduction = "sum"}).backward();
  expect_values(input.grad(), {-1, -1});
}

TEST(Loss, BroadcastsAndPromotes) {
  const Tensor x = tensor({{1.f}, {2.f}});
  const Tensor target = tensor({0.f, 1.f}, {.dtype = float64});
  const Tensor loss = mse_loss(x, target, {.reduction = "none"});

  expect_values(loss, {1, 0, 4, 1});
  EXPECT_EQ(loss.dtype(), float64);
}

TEST(Loss, OfNothingIsNotANumber) {
  expect_values(mse_loss(ones({0}), ones({0})), {NAN});
  expect_values(mse_loss(ones({0}), ones({0}), {.reduction = "sum"}), {0});
}

TEST(Loss, OfAbsoluteDifferencesHasNoSlopeAtZero) {
  const Tensor x = tensor({1.f, 2.f, 3.f}).requires_grad_();
  const Tensor loss = l1_loss(x, tensor({1.f, 4.f, 0.f}), {.reduction = "sum"});

  loss.backward();

  expect_values(loss, {5});
  expect_values(x.grad(), {0, -1, 1});
}

TEST(Loss, SmoothL1AndHuberDifferByTheirScale) {
  const Tensor x = tensor({0.f, 1.f, 4.f});
  const Tensor zero = zeros({3});

  expect_values(smooth_l1_loss(x, zero, {.reduction = "none", .beta = 2}), {0, 0.25, 3});
  expect_values(huber_loss(x, zero, {.reduction = "none", .delta = 2}), {0, 0.5, 6});
  expect_values(smooth_l1_loss(x, zero, {.reduction = "none", .beta = 0}), {0, 1, 4});
}

TEST(Loss, OfProbabilitiesStaysFinite) {
  const Tensor x = tensor({0.9f, 0.2f, 0.f});
  const Tensor target = tensor({1.f, 0.f, 1.f});

  expect_values(binary_cross_entropy(x, target, {.reduction = "none"}),
                {0.10536052, 0.22314355, 100});
  expect_values(
      binary_cross_entropy(x, target, {.weight = tensor({2.f, 0.f, 0.f}), .reduction = "sum"}),
      {0.21072103});
}

TEST(Loss, OfProbabilitiesOutsideTheUnitIntervalIsRefused) {
  expect_refused([] { binary_cross_entropy(full({40}, 1.5), ones({40})); },
                 "[binary_cross_entropy] some element of the input or the target is not between");
  expect_refused([] { binary_cross_entropy(full({40}, 0.5), full({40}, 1.5)); }, "the target");
  expect_refused([] { binary_cross_entropy(full({3}, NAN), ones({3})); }, "the input");
}

TEST(Loss, OfLogitsDoesNotOverflow) {
  const Tensor x = tensor({0.5f, -2.f, 1.f, 1000.f});
  const Tensor target = tensor({1.f, 0.f, 0.5f, 0.f});

  expect_values(binary_cross_entropy_with_logits(x, target, {.reduction = "none"}),
                {0.47407698, 0.12692801, 0.81326169, 1000});
  expect_values(
      binary_cross_entropy_with_logits(x.narrow(0, 0, 3), target.narrow(0, 0, 3),
                                       {.reduction = "none", .pos_weight = tensor({3.f})}),
      {1.42223095, 0.12692801, 1.12652338});
}

TEST(Loss, OfDivergenceIsZeroWhereTheTargetIs) {
  const Tensor log_p = tensor({{-1.f, -2.f}}).requires_grad_();
  const Tensor target = tensor({{0.5f, 0.f}});

  const Tensor loss = kl_div(log_p, target, {.reduction = "sum"});
  loss.backward();

  expect_values(loss, {0.15342641});
  expect_values(log_p.grad(), {-0.5, 0});
  expect_values(kl_div(log_p, target, {.reduction = "batchmean"}), {0.15342641});
  expect_values(kl_div(log_p, target), {0.07671321});
}

TEST(Loss, RefusesUnknownReductionsAndParameters) {
  const Tensor x = ones({2});

  expect_refused([&] { mse_loss(x, x, {.reduction = "average"}); },
                 "[mse_loss] reduction 'average' is unknown");
  expect_refused([&] { smooth_l1_loss(x, x, {.beta = -1}); }, "beta is -1");
  expect_refused([&] { huber_loss(x, x, {.delta = 0}); }, "delta is 0");
  expect_refused([&] { mse_loss(ones({2}, {.dtype = int64}), ones({2}, {.dtype = int64})); },
                 "takes floating dtypes");
  expect_refused([&] { mse_loss(x, ones({3})); }, "[mse_loss]");
}

TEST(Loss, MarginRankingWantsTheRightOrder) {
  const Tensor a = tensor({1.f, 2.f, 3.f});
  const Tensor b = tensor({2.f, 2.f, 1.f});
  const Tensor target = tensor({1.f, -1.f, 1.f});

  EXPECT_EQ(
      margin_ranking_loss(a, b, target, {.margin = 0.5, .reduction = "none"}).to_vector<float>(),
      std::vector<float>({1.5, 0.5, 0}));
  EXPECT_FLOAT_EQ(margin_ranking_loss(a, b, target).item<float>(), 1.f / 3);
  EXPECT_THROW(margin_ranking_loss(a, b, target, {.reduction = "batch"}), InvalidArgument);
}

// The mean divides by the sum of the weights, but Huber's by their number, as in PyTorch.
TEST(Loss, WeightsOfElements) {
  const Tensor x = tensor({1.f, 2.f, 3.f});
  const Tensor target = tensor({0.f, 0.f, 3.f});
  const Tensor weight = tensor({1.f, 2.f, 5.f});

  EXPECT_EQ(mse_loss(x, target, {.weight = weight}).item<float>(), 9.f / 8);
  EXPECT_EQ(l1_loss(x, target, {.weight = weight}).item<float>(), 5.f / 8);
  EXPECT_EQ(l1_loss(x, target, {.reduction = "sum", .weight = weight}).item<float>(), 5);
  EXPECT_EQ(huber_loss(x, target, {.weight = weight}).item<float>(), 3.5f / 3);
  EXPECT_EQ(mse_loss(x, target, {.reduction = "none", .weight = weight}).to_vector<float>(),
            std::vector<float>({1, 8, 0}));
  EXPECT_THROW(mse_loss(x, target, {.weight = ones({1})}), InvalidArgument);
}

// Values of PyTorch 2.
TEST(Loss, TripletWantsThePositiveNearer) {
  const Tensor anchor = tensor({{1.0, 2.0}, {3.0, 4.0}}, {.dtype = float64});
  const Tensor positive = tensor({{1.0, 3.0}, {0.0, 4.0}}, {.dtype = float64});
  const Tensor negative = tensor({{2.0, 2.0}, {3.0, 5.0}}, {.dtype = float64});
  const auto losses = [&](const TripletOptions& options) {
    return triplet_margin_loss(anchor, positive, negative, options).to_vector<double>();
  };

  EXPECT_NEAR(losses({.reduction = "none"})[1], 3.0000019999996663, 1e-14);
  EXPECT_NEAR(losses({.margin = 2, .p = 1, .swap = true, .reduction = "none"})[1], 4.000002, 1e-14);
  EXPECT_NEAR(losses({})[0], 2.0000009999998332, 1e-14);
}

// Their sum is not a float16 value.
TEST(Loss, MeansOfManyWeightedFloat16AreFinite) {
  const Tensor x = zeros({131072}, {.dtype = float16});
  const Tensor weight = ones_like(x);

  EXPECT_EQ(huber_loss(x, x + 1, {.weight = weight}).item(), 0.5);
  EXPECT_NEAR(binary_cross_entropy_with_logits(x, x, {.weight = weight}).item(), 0.693, 1e-3);
}

TEST(Loss, CtcTargetsInOneVectorAreAsManyAsTheirLengths) {
  const Tensor log_probs = log_softmax(zeros({6, 2, 4}), -1);
  const Tensor targets = tensor({1, 2, 3, 1, 2});

  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{3, 3}, {1, 1}}) {
    const std::string text = str("[ctc_loss] target_lengths add up to ", lengths[0] + lengths[1],
                                 ", but the targets in one vector are 5; ");
    expect_refused([&] { ctc_loss(log_probs, targets, {6, 6}, lengths); }, text);
    expect_refused([&] { ctc_loss(log_probs, targets, tensor({6, 6}), tensor(lengths)); }, text);
  }
  const Tensor rows = tensor({{1, 2, 3}, {1, 2, 0}});
  EXPECT_EQ(ctc_loss(log_probs, targets, {6, 6}, {3, 2}).item(),
            ctc_loss(log_probs, rows, {6, 6}, {3, 2}).item());
}

TEST(Loss, OfAGaussianWithInfiniteVarianceIsInfinite) {
  const Tensor input = tensor({1.F, 2.F}).requires_grad_();
  const Tensor variance = tensor({1.F, INFINITY});
  const Tensor losses =
      gaussian_nll_loss(input, tensor({1.F, 3.F}), variance, {.reduction = "none"});
  EXPECT_EQ(losses.to_vector<float>(), (std::vector<float>{0, INFINITY}));
  losses.sum().backward();
  EXPECT_EQ(input.grad().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Loss, KlDivergenceOfABatchDividesByTheRowsOfTheInput) {
  const Tensor loss =
      kl_div(zeros({1, 3}) - 1, full({4, 3}, std::exp(1.)), {.reduction = "batchmean"});
  EXPECT_NEAR(loss.item(), 4 * 3 * 2 * std::exp(1.), 1e-4);
}

TEST(Loss, WithLogitsHasTheDtypeOfTheTarget) {
  const Tensor x = zeros({2}), weight = ones({2}, {.dtype = float64});
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x, {.pos_weight = weight}).dtype(), float32);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x.to(float64), {.weight = ones({2})}).dtype(),
            float64);
}

}  // namespace
}  // namespace flow
