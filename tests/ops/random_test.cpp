#include "ops/random/random.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/interpreter.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/shrink.h"
#include "ops/random/multinomial.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

// Follows the rule of core/generator.h, element by element.
float uniform_at(uint64_t seed, uint64_t stream, int64_t i) {
  const auto block = philox({.seed = seed, .stream = stream}, static_cast<uint64_t>(i / 4));
  return uniform_float(block[static_cast<size_t>(i % 4)]);
}

TEST(Random, UniformFollowsTheElementRule) {
  manual_seed(42);
  rand({3});  // stream 0
  const auto values = rand({1031}).to_vector<float>();
  for (int64_t i = 0; i < 1031; ++i) {
    ASSERT_EQ(values[static_cast<size_t>(i)], uniform_at(42, 1, i)) << i;
  }
}

TEST(Random, DoublesTakeTwoLanes) {
  manual_seed(7);
  const auto values = rand({5}, {.dtype = float64}).to_vector<double>();
  for (int64_t i = 0; i < 5; ++i) {
    const auto block = philox({.seed = 7, .stream = 0}, static_cast<uint64_t>(i / 2));
    const auto lane = static_cast<size_t>(2 * (i % 2));
    EXPECT_EQ(values[static_cast<size_t>(i)], uniform_double(block[lane], block[lane + 1]));
  }
}

TEST(Random, NormalIsBoxMuller) {
  manual_seed(3);
  const auto values = randn({8}).to_vector<float>();
  for (int64_t i = 0; i < 8; ++i) {
    const auto block = philox({.seed = 3, .stream = 0}, static_cast<uint64_t>(i / 4));
    const auto pair = static_cast<size_t>(i % 4 / 2 * 2);
    const double u = uniform_float(block[pair]) + 0x1p-24, v = uniform_float(block[pair + 1]);
    const double angle = 2 * M_PI * v;
    const double want =
        std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    EXPECT_NEAR(values[static_cast<size_t>(i)], want, 2e-6) << i;
  }
}

TEST(Random, MomentsAreThoseOfTheDistribution) {
  manual_seed(11);
  constexpr int64_t kCount = 200000;
  double sum = 0, squares = 0;
  for (const double x : normal(1.5, 2, {kCount}, {.dtype = float64}).to_vector<double>()) {
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 1.5, 0.02);
  EXPECT_NEAR(squares / kCount - 1.5 * 1.5, 4, 0.06);
}

TEST(Random, IntegersCoverTheirRangeEvenly) {
  manual_seed(5);
  std::vector<int> count(7, 0);
  for (const int64_t x : randint(-3, 4, {70000}).to_vector<int64_t>()) {
    ASSERT_GE(x, -3);
    ASSERT_LT(x, 4);
    ++count[static_cast<size_t>(x + 3)];
  }
  for (const int c : count)
    EXPECT_NEAR(c, 10000, 400);
  const auto wide = randint(int64_t{-1} << 62, int64_t{1} << 62, {1000}).to_vector<int64_t>();
  EXPECT_NE(*std::min_element(wide.begin(), wide.end()),
            *std::max_element(wide.begin(), wide.end()));
}

TEST(Random, PermutationHoldsEachNumberOnce) {
  for (const int64_t n : {0, 1, 1000, 2047, 2048, 5000}) {
    auto order = randperm(n).to_vector<int64_t>();
    EXPECT_EQ(std::is_sorted(order.begin(), order.end()), n < 2) << n;
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(order[static_cast<size_t>(i)], i);
  }
}

// The permutation orders keys that the seed determines. These were ordered by std::stable_sort.
TEST(Random, PermutationsOfASeedStay) {
  manual_seed(7);
  const auto starts_with = [](int64_t n, const std::vector<int64_t>& expected) {
    const auto order = randperm(n).to_vector<int64_t>();
    return std::equal(expected.begin(), expected.end(), order.begin());
  };
  EXPECT_TRUE(starts_with(5, {4, 1, 0, 2, 3}));
  EXPECT_TRUE(starts_with(1000, {312, 480, 514, 267}));
  EXPECT_TRUE(starts_with(100000, {78593, 90474, 65586, 91554}));
}

TEST(Random, BernoulliFollowsItsChances) {
  manual_seed(1);
  const Tensor p = full({30000}, 0.3);
  double sum = 0;
  for (const float x : bernoulli(p).to_vector<float>()) {
    ASSERT_TRUE(x == 0 || x == 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 30000, 0.3, 0.02);
  for (const float x : bernoulli(zeros({100})).to_vector<float>())
    EXPECT_EQ(x, 0);
  for (const float x : bernoulli(ones({100})).to_vector<float>())
    EXPECT_EQ(x, 1);
}

TEST(Random, InPlaceDrawsRespectStrides) {
  manual_seed(8);
  const Tensor x = zeros({3, 5});
  x.transpose(0, 1).uniform_(2, 3);
  const auto values = x.to_vector<float>();
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(values[static_cast<size_t>(i * 5 + j)], 2 + uniform_at(8, 0, j * 3 + i));
    }
  }
}

// The logical values of a draw do not depend on the layout or the number of ranks.
TEST(Random, LayoutsDoNotChangeValues) {
  manual_seed(9);
  const auto want_uniform = rand({7, 10}).to_vector<float>();
  const auto want_normal = randn({7, 10}).to_vector<float>();
  const auto want_order = randperm(23).to_vector<int64_t>();
  for (const int64_t ranks : {2, 3}) {
    run_ranks(ranks, [&] {
      std::vector<int64_t> all;
      for (int64_t r = 0; r < ranks; ++r)
        all.push_back(r);
      const Placement placement("cpu", all);
      for (const Sbp& layout : {sbp::split(0), sbp::split(1), sbp::broadcast}) {
        manual_seed(9);
        const TensorOptions options{.placement = placement, .sbp = layout};
        EXPECT_EQ(rand({7, 10}, options).to_vector<float>(), want_uniform);
        EXPECT_EQ(randn({7, 10}, options).to_vector<float>(), want_normal);
        if (layout.dim() == 0) {
          EXPECT_EQ(randperm(23, options).to_vector<int64_t>(), want_order);
        }
      }
    });
  }
}

TEST(Random, LocalDrawsOfRanksDiffer) {
  manual_seed(4);
  const auto alone = rand({4}).to_vector<float>();
  std::vector<std::vector<float>> drawn(2);
  run_ranks(2, [&] {
    manual_seed(4);
    drawn[static_cast<size_t>(env::rank())] = rand({4}).to_vector<float>();
  });
  EXPECT_EQ(drawn[0], alone);
  EXPECT_NE(drawn[1], alone);
}

TEST(Random, BadArgumentsAreRefused) {
  EXPECT_THROW(randint(3, 3, {2}), InvalidArgument);
  EXPECT_THROW(rand({2}, {.dtype = int64}), InvalidArgument);
  EXPECT_THROW(normal(0, -1, {2}), InvalidArgument);
  EXPECT_THROW(normal(zeros({2}), tensor({1.f, -1.f})), InvalidArgument);
  EXPECT_THROW(normal(0, tensor({NAN, 1.f})), InvalidArgument);
  EXPECT_THROW(zeros({2}).uniform_(1, 0), InvalidArgument);
  EXPECT_THROW(rand({2}, {.placement = Placement("cpu", {0}), .sbp = sbp::partial_sum}),
               InvalidArgument);
}

TEST(Random, MultinomialRefusesWeightsThatAreNoDistribution) {
  for (const bool replacement : {false, true}) {
    const MultinomialOptions options{.replacement = replacement};
    EXPECT_THROW(multinomial(tensor({1.f, -0.5f}), 1, options), InvalidArgument);
    EXPECT_THROW(multinomial(tensor({1.f, NAN}), 1, options), InvalidArgument);
    EXPECT_THROW(multinomial(tensor({1.f, INFINITY}), 1, options), InvalidArgument);
    EXPECT_THROW(multinomial(tensor({{1.f, 2.f}, {0.f, 0.f}}), 1, options), InvalidArgument);
    EXPECT_EQ(multinomial(tensor({0.f, 2.f}), 1, options).item<int64_t>(), 1);
  }
}

TEST(Random, IntegersLikeAnotherTensor) {
  const Tensor x = zeros({50}, {.dtype = float32});
  const Tensor y = randint_like(x, 3);

  EXPECT_EQ(y.dtype(), float32);
  for (const double value : y.to_vector<double>())
    EXPECT_TRUE(value == 0 || value == 1 || value == 2) << value;
  EXPECT_EQ(randint_like(x, 5, 6, {.dtype = int64}).to_vector<int64_t>(),
            std::vector<int64_t>(50, 5));
  EXPECT_EQ(randint(1, {2}).to_vector<int64_t>(), std::vector<int64_t>({0, 0}));
}

TEST(Random, NormalTakesAMeanAndASpreadForEachElement) {
  const Tensor mean = tensor({{-1e6f}, {1e6f}});
  const Tensor y = normal(mean, tensor({0.f, 1.f, 2.f}));

  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(y.to_vector<float>()[0], -1e6f);
  EXPECT_EQ(y.to_vector<float>()[3], 1e6f);
  EXPECT_NEAR(y.to_vector<float>()[5], 1e6f, 20);
  EXPECT_EQ(normal(mean, 0).to_vector<float>(), mean.to_vector<float>());
  EXPECT_EQ(normal(3, zeros({2})).to_vector<float>(), std::vector<float>({3, 3}));
  EXPECT_THROW(normal(mean, -1), InvalidArgument);
}

TEST(Random, GumbelSoftmaxOf16BitsChoosesEvenly) {
  for (const DType dtype : {bfloat16, float16}) {
    manual_seed(12);
    const Tensor y = gumbel_softmax(zeros({800, 4096}, {.dtype = dtype}), {.hard = true});

    EXPECT_EQ(y.dtype(), dtype);
    const Tensor quarters = y.to(float32).reshape({800, 4, 1024}).sum({0, 2});
    for (const float count : quarters.to_vector<float>())
      EXPECT_NEAR(count, 200, 40) << dtype;
  }
}

TEST(Random, PermutationsFitIntoTheirDtype) {
  EXPECT_EQ(randperm(256, {.dtype = uint8}).max().item<int64_t>(), 255);
  EXPECT_EQ(randperm(128, {.dtype = int8}).max().item<int64_t>(), 127);
  EXPECT_EQ(randperm(0, {.dtype = int8}).numel(), 0);
  expect_refused([] { randperm(300, {.dtype = uint8}); },
                 "[randperm] 299 does not fit into uint8; give a number from 0 to 255");
  EXPECT_THROW(randperm(129, {.dtype = int8}), InvalidArgument);
}

// If it were rounded from float32, one of 512 numbers would be 1.
TEST(Random, UniformNumbersOf16BitsStayBelowOne) {
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor x = rand({100000}, {.dtype = dtype});

    EXPECT_LT(x.max().item(), 1) << dtype;
    EXPECT_GE(x.min().item(), 0) << dtype;
    EXPECT_NEAR(x.to(float32).mean().item(), 0.5, 0.005) << dtype;
  }
}

}  // namespace
}  // namespace flow
