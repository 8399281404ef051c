#include "ops/reduce/order_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/special.h"
#include "ops/index/count.h"
#include "ops/index/index.h"
#include "ops/index/search.h"
#include "ops/random/random.h"
#include "ops/reduce/order_statistics_op.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(OrderStatistics, MedianIsTheLowerOfTwoMiddles) {
  const Tensor x = tensor({4.F, 1.F, 3.F, 2.F});

  EXPECT_EQ(median(x).item(), 2);
  EXPECT_EQ(median(x, 0).indices.item<int64_t>(), 3);
  EXPECT_EQ(x.kthvalue(3).values.item(), 3);
}

TEST(OrderStatistics, MedianIsNanWhereThereIsOne) {
  const Tensor x = tensor({4.F, NAN, 3.F});

  EXPECT_TRUE(std::isnan(median(x).item()));
  EXPECT_EQ(nanmedian(x).item(), 3);
  EXPECT_TRUE(std::isnan(median(zeros({0})).item()));
}

TEST(OrderStatistics, ModeIsTheSmallestOfTheMostFrequent) {
  const ValuesIndices y = mode(tensor({{1, 2, 2, 3, 3}, {5, 4, 5, 4, 1}}));

  EXPECT_EQ(y.values.to_vector<int64_t>(), (Longs{2, 4}));
  EXPECT_EQ(y.indices.to_vector<int64_t>(), (Longs{2, 3}));
}

TEST(OrderStatistics, RanksOutOfRangeAreRefused) {
  const Tensor x = tensor({1.F, 2.F});

  EXPECT_THROW(kthvalue(x, 3), InvalidArgument);
  EXPECT_THROW(kthvalue(x, 0), InvalidArgument);
  EXPECT_THROW(quantile(x, 1.1), InvalidArgument);
  EXPECT_THROW(quantile(x, 0.5, {.interpolation = "best"}), InvalidArgument);
  EXPECT_THROW(median(tensor({true})), InvalidArgument);
}

TEST(OrderStatistics, SeveralQuantilesGiveANewFirstDim) {
  const Tensor x = tensor({{0.F, 1.F, 2.F, 3.F, 4.F}, {5.F, 5.F, 5.F, 5.F, 9.F}});

  const Tensor y = quantile(x, {0.25, 1.0}, {.dim = 1});

  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 5, 4, 9}));
}

TEST(OrderStatistics, RanksOf16BitLinesAreNotRounded) {
  const Tensor steps = cat({zeros({305}), ones({695})}).to(bfloat16);
  Tensor with_nan = arange(3000).to(float16);
  with_nan[2999] = NAN;

  EXPECT_EQ(quantile(arange(2999).to(float16), 0.1).item<float>(), 299.75F);  // 299.8
  EXPECT_EQ(nanquantile(with_nan, 0.1).item<float>(), 299.75F);
  EXPECT_EQ(quantile(steps, 0.3045).item<float>(), 0.1953125F);  // 0.1955
  EXPECT_EQ(quantile(steps, 1.0).item<float>(), 1);
  EXPECT_EQ(quantile(steps, 0.5).dtype(), bfloat16);
}

TEST(OrderStatistics, GradientsOf16BitQuantilesAreThoseOfTheirNeighbours) {
  const Tensor x = tensor({3.F, 1.F, 2.F, 0.F}, {.dtype = float16}).requires_grad_();

  quantile(x, 0.5).backward();

  EXPECT_EQ(x.grad().dtype(), float16);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 0.5, 0.5, 0}));
}

TEST(OrderStatistics, RanksThatFloat32DoesNotHoldAreFloat64) {
  const int64_t size = int64_t{1} << 24;

  EXPECT_EQ(ops::rank_dtype(float32, size), float32);
  EXPECT_EQ(ops::rank_dtype(float32, size + 1), float64);
}

TEST(Bitwise, OperatorsTakeMasksAndNumbers) {
  const Tensor x = tensor({6, 3, -1});

  EXPECT_EQ((x & tensor({3, 3, 3})).to_vector<int64_t>(), (Longs{2, 3, 3}));
  EXPECT_EQ((~x).to_vector<int64_t>(), (Longs{-7, -4, 0}));
  EXPECT_EQ((x.gt(0) & x.lt(5)).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(x.bitwise_left_shift(1).to_vector<int64_t>(), (Longs{12, 6, -2}));
  EXPECT_THROW(bitwise_and(tensor({1.F}), tensor({1})), InvalidArgument);
}

TEST(Special, GammaFunctionsKnowTheirPoles) {
  const auto number = [](double x) { return tensor({x}, {.dtype = float64}); };
  EXPECT_DOUBLE_EQ(lgamma(number(5)).item(), std::log(24.0));
  EXPECT_TRUE(std::isinf(lgamma(tensor({-1.0})).item()));
  EXPECT_TRUE(std::isnan(digamma(tensor({-1.0})).item()));
  EXPECT_NEAR(digamma(number(1)).item(), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(polygamma(1, number(1)).item(), 1.6449340668482264, 1e-14);
  EXPECT_THROW(polygamma(-1, tensor({1.0})), InvalidArgument);
}

TEST(Special, ErfinvInvertsErfUpToTheEnds) {
  for (const double y : {-3.0, -0.4, 1e-9, 0.7, 5.0})
    EXPECT_NEAR(erfinv(tensor({std::erf(y)}, {.dtype = float64})).item(), y, y > 4 ? 1e-4 : 1e-12)
        << y;
  EXPECT_TRUE(std::isinf(erfinv(tensor({1.0})).item()));
  EXPECT_TRUE(std::isnan(erfinv(tensor({1.5})).item()));
}

TEST(Scan, RunningExtremaNameTheLastOfEqualOnes) {
  const ValuesIndices y = cummax(tensor({1.F, 3.F, 3.F, 2.F}), 0);

  EXPECT_EQ(y.values.to_vector<float>(), (Floats{1, 3, 3, 3}));
  EXPECT_EQ(y.indices.to_vector<int64_t>(), (Longs{0, 1, 2, 2}));
}

TEST(Count, UniqueTellsPlacesAndCounts) {
  const Tensor x = tensor({{3, 1}, {3, 2}});

  const UniqueResult y = unique(x, {.return_inverse = true, .return_counts = true});

  EXPECT_EQ(y.output.to_vector<int64_t>(), (Longs{1, 2, 3}));
  EXPECT_EQ(y.inverse_indices.shape(), (Shape{2, 2}));
  EXPECT_EQ(y.inverse_indices.to_vector<int64_t>(), (Longs{2, 0, 2, 1}));
  EXPECT_EQ(y.counts.to_vector<int64_t>(), (Longs{1, 1, 2}));
  EXPECT_EQ(unique(zeros({0})).output.shape(), (Shape{0}));
}

TEST(Count, UniqueRowsAreComparedWhole) {
  const Tensor x = tensor({{1, 2}, {0, 9}, {1, 2}});

  EXPECT_EQ(unique(x, {.dim = 0}).output.to_vector<int64_t>(), (Longs{0, 9, 1, 2}));
  EXPECT_EQ(unique_consecutive(tensor({1, 1, 2, 1})).output.to_vector<int64_t>(), (Longs{1, 2, 1}));
}

TEST(Count, BincountIsAtLeastAsLongAsAsked) {
  EXPECT_EQ(tensor({1, 1, 3}).bincount().to_vector<int64_t>(), (Longs{0, 2, 0, 1}));
  EXPECT_EQ(bincount(tensor({1}), {.minlength = 3}).to_vector<int64_t>(), (Longs{0, 1, 0}));
  EXPECT_EQ(bincount(zeros({0}, {.dtype = int64})).shape(), (Shape{0}));
  EXPECT_THROW(bincount(tensor({1, -1})), InvalidArgument);
}

TEST(Count, HistcCountsTheUpperEndIn) {
  const Tensor x = tensor({0.F, 1.F, 2.F, 4.F, NAN});

  EXPECT_EQ(histc(x, {.bins = 2, .min = 0, .max = 4}).to_vector<float>(), (Floats{2, 2}));
  EXPECT_THROW(histc(tensor({1, 2}), {}), InvalidArgument);
}

TEST(Count, HistcCountsEveryElementOnce) {
  manual_seed(4);
  for (const DType dtype : {float32, float64}) {
    const Tensor x = randn({3, 70001}, {.dtype = dtype});
    for (const int64_t bins : {1, 7, 1000, 5000}) {
      const Tensor counts = histc(x, {.bins = bins, .min = -2, .max = 1.5});
      std::vector<double> expected(static_cast<size_t>(bins), 0);
      for (const double v : x.to_vector<double>()) {
        if (v < -2 || v > 1.5) continue;
        const double place = dtype == float64
                                 ? (v + 2) / 3.5 * static_cast<double>(bins)
                                 : (static_cast<float>(v) + 2.F) / 3.5F * static_cast<float>(bins);
        ++expected[static_cast<size_t>(std::min(static_cast<int64_t>(place), bins - 1))];
      }
      EXPECT_EQ(counts.to_vector<double>(), expected) << dtype << ' ' << bins;
      EXPECT_EQ(histc(x.t(), {.bins = bins, .min = -2, .max = 1.5}).to_vector<double>(), expected);
    }
  }
}

TEST(Count, HistcNeedsAFiniteRange) {
  EXPECT_THROW(histc(tensor({0.F, INFINITY}), {.bins = 4}), InvalidArgument);
  EXPECT_THROW(histc(tensor({0.F, NAN}), {.bins = 4}), InvalidArgument);
  EXPECT_EQ(histc(zeros({0}), {.bins = 2}).to_vector<float>(), (Floats{0, 0}));
}

TEST(Search, PlacesStandBeforeOrBehindEqualElements) {
  const Tensor sequence = tensor({1, 3, 3, 5});
  const Tensor values = tensor({0, 3, 9});

  EXPECT_EQ(searchsorted(sequence, values).to_vector<int64_t>(), (Longs{0, 1, 4}));
  EXPECT_EQ(bucketize(values, sequence, {.right = true}).to_vector<int64_t>(), (Longs{0, 3, 4}));
  EXPECT_EQ(
      searchsorted(tensor({5, 1, 3}), values, {.sorter = tensor({1, 2, 0})}).to_vector<int64_t>(),
      (Longs{0, 1, 3}));
  EXPECT_EQ(searchsorted(sequence, tensor({2.5F, 3.5F})).to_vector<int64_t>(), (Longs{1, 3}));
}

}  // namespace
}  // namespace flow
