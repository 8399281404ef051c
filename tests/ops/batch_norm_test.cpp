#include "ops/norm/batch_norm.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(BatchNorm, TrainsOnTheStatisticsOfTheBatch) {
  // A constant channel of 0: elsewhere eps makes its rounding errors large.
  const Tensor x = tensor({{1.f, 0.f}, {2.f, 0.f}, {3.f, 0.f}, {4.f, 0.f}});
  const Tensor mean = zeros({2});
  const Tensor var = ones({2});

  const Tensor y = batch_norm(x, mean, var, {.training = true});

  expect_values(y, {-1.34163542, 0, -0.44721181, 0, 0.44721181, 0, 1.34163542, 0});
  expect_values(mean, {0.25, 0});
  expect_values(var, {0.9 + 0.1 * 5.0 / 3, 0.9});  // unbiased variances 5/3 and 0
}

TEST(BatchNorm, EvaluatesOnRunningStatistics) {
  const Tensor x = tensor({{{1.f, 3.f}, {5.f, 7.f}}});
  const Tensor mean = tensor({1.f, 5.f});
  const Tensor var = tensor({4.f, 1.f});

  expect_values(batch_norm(x, mean, var, {.eps = 0}), {0, 1, 0, 2});
  expect_values(
      batch_norm(x, mean, var, {.weight = tensor({2.f, 3.f}), .bias = ones({2}), .eps = 0}),
      {1, 3, 1, 7});
  expect_values(mean, {1, 5});
}

TEST(BatchNorm, GradientsSumToZeroOverTheBatch) {
  const Tensor x = tensor({{1.f}, {2.f}, {4.f}}).requires_grad_();
  const Tensor weight = tensor({3.f}).requires_grad_();
  const Tensor bias = tensor({0.f}).requires_grad_();
  const Tensor y =
      batch_norm(x, Tensor(), Tensor(), {.weight = weight, .bias = bias, .training = true});

  y.backward(tensor({{1.f}, {0.f}, {0.f}}));

  EXPECT_NEAR(x.grad().sum().item(), 0, 1e-5);
  expect_values(bias.grad(), {1});
  expect_values(weight.grad(), {-1.06904346}, 1e-5);
}

TEST(BatchNorm, KeepsSmallVariancesOfLargeMeans) {
  const Tensor x = tensor({{10001.f}, {10002.f}, {10003.f}, {10004.f}});

  expect_values(batch_norm(x, Tensor(), Tensor(), {.training = true}),
                {-1.34163542, -0.44721181, 0.44721181, 1.34163542}, 2e-3);
}

TEST(BatchNorm, RunningStatisticsMayShareAStorage) {
  const Tensor both = zeros({2, 2});
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 6.f}});

  batch_norm(x, both.select(1, 0), both.select(1, 1), {.training = true, .momentum = 0.5});

  EXPECT_EQ(both.to_vector<float>(), std::vector<float>({1, 1, 2, 4}));
}

TEST(BatchNorm, RefusesWhatItCannotNormalise) {
  expect_refused(
      [] {
        batch_norm(ones({1, 2}), Tensor(), Tensor(), {.training = true});
      },
      "[batch_norm] training needs more than one value per channel");
  expect_refused([] { batch_norm(ones({3}), Tensor(), Tensor()); },
                 "[batch_norm] takes (N, C, ...)");
  expect_refused(
      [] {
        batch_norm(ones({3, 2}), ones({3}), ones({3}));
      },
      "running statistics must have shape (2,)");
  expect_refused(
      [] {
        batch_norm(ones({3, 2}), ones({2}), Tensor());
      },
      "only one of running_mean and running_var");
}

}  // namespace
}  // namespace flow
