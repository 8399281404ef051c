#include "ops/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/tensor_meta.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/norm/norm.h"
#include "ops/random/random.h"
#include "ops/shape/concat.h"
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

// One channel of samples, of positions, and of samples in a view, which the plain kernel takes.
TEST(BatchNorm, KeepsTheVarianceOfDoublesOfAnyMean) {
  const Tensor rows = tensor({1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3}, {.dtype = float64});
  const Tensor pairs = stack({rows, zeros_like(rows)}, 1);
  const std::vector<double> expected{-1.34163542, -0.44721181, 0.44721181, 1.34163542};
  for (const Tensor& x : {rows.reshape({4, 1}), rows.reshape({1, 1, 4}), pairs.narrow(1, 0, 1)}) {
    const Tensor mean = zeros({1}), var = ones({1});

    expect_values(batch_norm(x, mean, var, {.training = true}), expected);

    expect_values(mean, {1e8}, 100);
    expect_values(var, {0.9 + 0.1 * 5.0 / 3});
    expect_values(layer_norm(rows, {4}), expected);
  }
}

TEST(BatchNorm, KeepsTheVarianceOfGlobalDoublesOfAnyMean) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const TensorOptions whole{.dtype = float64, .placement = both, .sbp = sbp::broadcast};
    Tensor x = tensor({{1e9}, {1e9 + 1}, {1e9 + 2}, {1e9 + 3}}, whole);
    x = x.to_global({.sbp = sbp::split(0)}).requires_grad_();
    const Tensor mean = zeros({1}, whole), var = ones({1}, whole);

    const Tensor y = batch_norm(x, mean, var, {.training = true});
    y.select(1, 0).narrow(0, 0, 1).sum().backward();

    expect_values(y, {-1.34163542, -0.44721181, 0.44721181, 1.34163542});
    expect_values(mean, {1e8 + 0.15});
    expect_values(var, {0.9 + 0.1 * 5.0 / 3});
    expect_values(x.grad(), {0.26833030, -0.35776837, -0.08944343, 0.17888150});
  });
}

// The second channel of a batch of 4 has an infinity.
void expect_no_variance(const TensorOptions& whole, const TensorOptions& rows) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({{1.0, 2.0}, {2.0, infinity}, {3.0, 2.0}, {4.0, 2.0}}, whole)
                       .to_global({.sbp = rows.sbp});
  const Tensor mean = zeros({2}, whole), var = ones({2}, whole);

  const std::vector<double> y =
      batch_norm(x, mean, var, {.training = true}).to(float64).to_vector<double>();

  const std::vector<double> variances = var.to(float64).to_vector<double>();
  EXPECT_NEAR(variances[0], 0.9 + 0.1 * 5.0 / 3, 1e-6);
  EXPECT_TRUE(std::isnan(variances[1])) << variances[1];
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_TRUE(std::isfinite(y[2 * row])) << y[2 * row];
    EXPECT_TRUE(std::isnan(y[2 * row + 1])) << y[2 * row + 1];
  }
}

TEST(BatchNorm, AnInfinityMakesAllOfItsChannelNaN) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    for (const DType dtype : {float32, float64}) {
      for (const Sbp& rows : {sbp::broadcast, sbp::split(0)}) {
        SCOPED_TRACE(testing::Message() << dtype << ' ' << rows);
        expect_no_variance({.dtype = dtype, .placement = both, .sbp = sbp::broadcast},
                           {.sbp = rows});
      }
    }
  });
}

// Each rank's samples are a batch of their own, if there are any.
void expect_ranks_to_normalise_alone(int64_t ranks, const Shape& shape) {
  run_ranks(static_cast<int>(ranks), [&] {
    manual_seed(3);
    const Placement all("cpu", arange(ranks).to_vector<int64_t>());
    const TensorOptions split{.dtype = float64, .placement = all, .sbp = sbp::split(0)};
    const TensorOptions whole{.dtype = float64, .placement = all, .sbp = sbp::broadcast};
    const Tensor x = randn(shape, split), dy = randn(shape, split);
    const Tensor weight = ones({shape[1]}, whole).requires_grad_();
    const Tensor mean = zeros({shape[1]}, whole), var = ones({shape[1]}, whole);
    const Tensor y =
        batch_norm(x, mean, var, {.weight = weight, .training = true, .stats = BatchStats::kLocal});
    y.backward(dy);

    const Tensor rows = x.full(), by = dy.full();
    const int64_t filled = std::min(ranks, shape[0]);
    Tensor dweight = zeros({shape[1]}, {.dtype = float64}), means = dweight, vars = dweight;
    for (int64_t rank = 0; rank < filled; ++rank) {
      const Range part = balanced_part(shape[0], ranks, rank);
      const Tensor own = ones({shape[1]}, {.dtype = float64}).requires_grad_();
      const Tensor own_mean = zeros_like(means), own_var = ones({shape[1]}, {.dtype = float64});
      batch_norm(rows.narrow(0, part.begin, part.size), own_mean, own_var,
                 {.weight = own, .training = true})
          .backward(by.narrow(0, part.begin, part.size));
      dweight = dweight + own.grad();
      means = means + own_mean / filled;
      vars = vars + own_var / filled;
    }
    const CloseOptions near{.rtol = 1e-12, .atol = 1e-12};
    EXPECT_TRUE(allclose(weight.grad().full(), dweight, near)) << weight.grad().full();
    EXPECT_TRUE(allclose(mean.full(), means, near)) << mean.full();
    EXPECT_TRUE(allclose(var.full(), vars, near)) << var.full();
  });
}

TEST(BatchNorm, RanksWithMoreSamplesThanOthersNormaliseAlone) {
  expect_ranks_to_normalise_alone(2, {5, 3});
  expect_ranks_to_normalise_alone(3, {7, 2, 2});
}

TEST(BatchNorm, RanksWithoutSamplesHaveNoStatistics) {
  expect_ranks_to_normalise_alone(4, {3, 1, 2, 2});
  expect_ranks_to_normalise_alone(3, {1, 2, 2});
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
