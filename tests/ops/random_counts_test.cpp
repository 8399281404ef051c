// Draws of numbers of events.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "core/generator.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"

namespace flow {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The mean of n draws is within five standard errors of that of the distribution, and the variance
// within some percent.
void expect_moments(const Tensor& draws, double mean, double variance) {
  const Tensor wide = cast(draws, float64);
  const double error = std::sqrt(variance / static_cast<double>(draws.numel()));
  EXPECT_NEAR(wide.mean().item<double>(), mean, 5 * error);
  EXPECT_NEAR(var(wide).item<double>(), variance, 0.1 * variance);
}

TEST(RandomCounts, PoissonDrawsHaveTheirMomentsAndAreWhole) {
  manual_seed(3);
  for (const double rate : {0.3, 7.5, 2000.25}) {
    const Tensor draws = poisson(full({20000}, rate));
    expect_moments(draws, rate, rate);
    EXPECT_EQ(draws.to_vector<float>(), draws.round().to_vector<float>());
  }
  expect_moments(poisson(full({20000}, 1e12, {.dtype = float64})), 1e12, 1e12);
  EXPECT_EQ(poisson(zeros({3})).sum().item<float>(), 0);
  EXPECT_EQ(poisson(full({3}, 2.0, {.dtype = float16})).dtype(), float16);
  EXPECT_THROW(poisson(full({3}, -1.0)), InvalidArgument);
  EXPECT_THROW(poisson(full({3}, kNan)), InvalidArgument);
  EXPECT_THROW(poisson(full({3}, 2, {.dtype = int64})), InvalidArgument);
}

TEST(RandomCounts, BinomialDrawsHaveTheirMomentsAndBroadcast) {
  manual_seed(4);
  expect_moments(binomial(full({20000}, 9.0), full({1}, 0.3)), 2.7, 1.89);
  expect_moments(binomial(full({1}, 5000.0), full({20000}, 0.7)), 3500, 1050);
  const Tensor sure = binomial(full({2, 1}, 4.0), tensor({0.F, 1.F}));
  EXPECT_EQ(sure.to_vector<float>(), (std::vector<float>{0, 4, 0, 4}));
  EXPECT_THROW(binomial(full({2}, 2.5), full({2}, 0.5)), InvalidArgument);
  EXPECT_THROW(binomial(full({2}, 2.0), full({2}, 1.5)), InvalidArgument);
  EXPECT_THROW(binomial(full({2}, 2.0), full({2}, 0.5, {.dtype = float64})), InvalidArgument);
}

TEST(RandomCounts, DoNotDependOnTheLayout) {
  manual_seed(5);
  const auto expected = poisson(full({7}, 3.5)).to_vector<float>();
  run_ranks(2, [&] {
    manual_seed(5);
    const Placement both("cpu", {0, 1});
    const Tensor rate = full({7}, 3.5, {.placement = both, .sbp = sbp::split(0)});
    EXPECT_EQ(poisson(rate).to_vector<float>(), expected);
  });
}

}  // namespace
}  // namespace flow
