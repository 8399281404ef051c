#include "ops/reduce/reduce.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/index/index.h"
#include "ops/shape/view.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Ints64 = std::vector<int64_t>;

Tensor leaf(const std::vector<double>& values, const Shape& shape) {
  return tensor(values, shape, {.requires_grad = true});
}

TEST(Reduce, SumsOverAllSomeAndNoDims) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(sum(x).item<float>(), 15);
  EXPECT_EQ(sum(x).shape(), Shape());
  EXPECT_EQ(sum(x, {}).shape(), Shape());
  EXPECT_EQ(sum(x, 0).to_vector<float>(), Floats({3, 5, 7}));
  EXPECT_EQ(sum(x, -1).to_vector<float>(), Floats({3, 12}));
  EXPECT_EQ(sum(x, {0, 1}).item<float>(), 15);
  EXPECT_EQ(x.sum({1}).to_vector<float>(), Floats({3, 12}));
}

TEST(Reduce, KeepdimLeavesSizeOne) {
  const Tensor x = counting({2, 3, 4});

  EXPECT_EQ(sum(x, {0, 2}, {.keepdim = true}).shape(), Shape({1, 3, 1}));
  EXPECT_EQ(sum(x, {0, 2}).shape(), Shape({3}));
  EXPECT_EQ(sum(x, {}, {.keepdim = true}).shape(), Shape({1, 1, 1}));
  EXPECT_EQ(sum(x, {2, 0}).to_vector<float>(), Floats({60, 92, 124}));
}

TEST(Reduce, BadDimsAreRefused) {
  const Tensor x = counting({2, 3});

  EXPECT_THROW(sum(x, 2), InvalidArgument);
  EXPECT_THROW(sum(x, -3), InvalidArgument);
  EXPECT_THROW(sum(x, {1, -1}), InvalidArgument);
}

TEST(Reduce, ScalarAcceptsItsOneDim) {
  EXPECT_EQ(sum(full({}, 3.0), 0).item<float>(), 3);
  EXPECT_EQ(sum(full({}, 3.0), -1).item<float>(), 3);
  EXPECT_THROW(sum(full({}, 3.0), 1), InvalidArgument);
}

TEST(Reduce, IntegersAndBoolsAreAddedAsInt64) {
  const Tensor small = tensor(std::vector<int8_t>{100, 100, 100}, {3});
  const Tensor truths = tensor({true, false, true});

  EXPECT_EQ(sum(small).dtype(), int64);
  EXPECT_EQ(sum(small).item<int64_t>(), 300);
  EXPECT_EQ(sum(truths).item<int64_t>(), 2);
  EXPECT_EQ(prod(small).item<int64_t>(), 1000000);
}

TEST(Reduce, NothingAddsUpToZero) {
  const Tensor x = zeros({0, 3});

  EXPECT_EQ(sum(x).item<float>(), 0);
  EXPECT_EQ(sum(x, 0).to_vector<float>(), Floats({0, 0, 0}));
  EXPECT_EQ(sum(x, 1).shape(), Shape({0}));
  EXPECT_TRUE(std::isnan(mean(x).item<float>()));
  EXPECT_EQ(prod(x).item<float>(), 1);
  EXPECT_FALSE(any(x).item<bool>());
  EXPECT_TRUE(all(x).item<bool>());
}

TEST(Reduce, MeanNeedsFloats) {
  EXPECT_EQ(mean(counting({2, 3}), 0).to_vector<float>(), Floats({1.5, 2.5, 3.5}));
  EXPECT_EQ(counting({4}).mean().item<float>(), 1.5f);
  EXPECT_THROW(mean(arange(4)), InvalidArgument);
}

TEST(Reduce, ManyFloatsKeepSixDigits) {
  // 2^24 + 1 is not a float value: adding ones one by one would stop there.
  const int64_t n = (int64_t{1} << 24) + 1000;
  const Tensor x = full({n}, 1.0);

  EXPECT_EQ(sum(cast(x, float64)).item<double>(), static_cast<double>(n));
  EXPECT_EQ(sum(x).item<float>(), static_cast<float>(n));
  EXPECT_EQ(sum(reshape(x, {n / 8, 8}), 0).to_vector<float>(),
            Floats(8, static_cast<float>(n / 8)));
}

TEST(Reduce, RowsAndColumnsOfAllLengthsMatchExactSums) {
  for (const int64_t rows : {1, 3, 16, 17, 130}) {
    for (const int64_t columns : {1, 5, 16, 33, 250, 2100}) {
      const Tensor x = counting({rows, columns}) / 8;
      const std::vector<double> values = x.to_vector<double>();
      std::vector<double> by_row(static_cast<size_t>(rows)),
          by_column(static_cast<size_t>(columns));
      for (int64_t i = 0; i < rows * columns; ++i) {
        by_row[static_cast<size_t>(i / columns)] += values[static_cast<size_t>(i)];
        by_column[static_cast<size_t>(i % columns)] += values[static_cast<size_t>(i)];
      }
      const auto row_sums = sum(x, 1).to_vector<double>();
      const auto column_sums = sum(x, 0).to_vector<double>();
      const auto transposed_sums = sum(x.t(), 0).to_vector<double>();
      for (size_t i = 0; i < by_row.size(); ++i) {
        EXPECT_NEAR(row_sums[i], by_row[i], 1e-6 * by_row[i]) << rows << " x " << columns;
        EXPECT_NEAR(transposed_sums[i], by_row[i], 1e-6 * by_row[i]) << rows << " x " << columns;
      }
      for (size_t i = 0; i < by_column.size(); ++i)
        EXPECT_NEAR(column_sums[i], by_column[i], 1e-6 * by_column[i]) << rows << " x " << columns;
    }
  }
}

TEST(Reduce, InnerAndOuterDimsTogether) {
  const Tensor x = counting({2, 3, 4});

  EXPECT_EQ(sum(x, {0, 2}).to_vector<float>(), Floats({60, 92, 124}));
  EXPECT_EQ(sum(x, 1).to_vector<float>(), Floats({12, 15, 18, 21, 48, 51, 54, 57}));
  EXPECT_EQ(sum(permute(x, {2, 0, 1}), {0, 2}).to_vector<float>(), Floats({66, 210}));
}

TEST(Reduce, ExpandedInputsCountTheirRepeats) {
  const Tensor x = expand(tensor({1.f, 2.f}), {3, 2});

  EXPECT_EQ(sum(x).item<float>(), 9);
  EXPECT_EQ(sum(x, 0).to_vector<float>(), Floats({3, 6}));
}

TEST(Reduce, SixteenBitFloatsAccumulateWider) {
  const Tensor x = full({4096}, 1.0, {.dtype = bfloat16});

  EXPECT_EQ(sum(x).item<float>(), 4096);
  EXPECT_EQ(sum(x).dtype(), bfloat16);
  EXPECT_EQ(sum(cast(x, float16)).item<float>(), 4096);
}

TEST(Reduce, SumToUndoesBroadcasting) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(sum_to(x, {3}).to_vector<float>(), Floats({3, 5, 7}));
  EXPECT_EQ(sum_to(x, {2, 1}).to_vector<float>(), Floats({3, 12}));
  EXPECT_EQ(sum_to(x, {1, 1}).shape(), Shape({1, 1}));
  EXPECT_EQ(sum_to(x, {}).item<float>(), 15);
  EXPECT_TRUE(sum_to(x, {2, 3}).is_same(x));
  EXPECT_THROW(sum_to(x, {2}), InvalidArgument);
}

TEST(Reduce, TruthOfElements) {
  const Tensor x = tensor({{0.f, 1.f}, {0.f, 0.f}, {2.f, std::nanf("")}});

  EXPECT_EQ(any(x, 1).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(all(x, 1).to_vector<bool>(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(any(x).dtype(), bool_);
  EXPECT_EQ(all(x, 1).dtype(), bool_);
  const Tensor bytes = cast(x, uint8);
  EXPECT_EQ(any(bytes).dtype(), uint8) << "as in PyTorch";
  EXPECT_EQ(all(bytes, 1, {.keepdim = true}).dtype(), uint8);
  EXPECT_EQ(any(bytes, 1).to_vector<int>(), (std::vector<int>{1, 0, 1}));
  EXPECT_TRUE(any(x).item<bool>());
  EXPECT_FALSE(all(x).item<bool>());
}

TEST(Reduce, GradientsAreRight) {
  const Tensor x = leaf({0.5, -1, 2, 0.25, 3, -0.75}, {2, 3});
  const auto fn = [](const Tensors& in) {
    return Tensors{sum(in[0]) * sum(in[0], 1), mean(in[0], 0, {.keepdim = true}) * in[0],
                   sum_to(in[0] * in[0], {3}), prod(in[0]), prod(in[0], 1)};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(Reduce, ProductGradientsAreRightAroundZeros) {
  const Tensor one_zero = leaf({2, 0, 3, 4}, {4});
  const Tensor two_zeros = leaf({0, 5, 0, 7}, {4});

  EXPECT_EQ(grad({prod(one_zero)}, {one_zero})[0].to_vector<double>(),
            (std::vector<double>{0, 24, 0, 0}));
  EXPECT_EQ(grad({prod(two_zeros)}, {two_zeros})[0].to_vector<double>(),
            (std::vector<double>{0, 0, 0, 0}));
  const auto fn = [](const Tensors& in) { return prod(in[0], 0); };
  EXPECT_TRUE(gradcheck(fn, {one_zero}));
  EXPECT_TRUE(gradgradcheck(fn, {one_zero}));
}

TEST(Reduce, ResultsDoNotDependOnTheKernelsThreads) {
  const Tensor x = counting({300, 1001}) / 7;
  const auto sums = [&x](int threads) {
    RankContext context({}, threads);
    const RankScope scope(context);
    return std::vector{sum(x).to_vector<float>(), sum(x, 0).to_vector<float>(),
                       sum(x, 1).to_vector<float>()};
  };

  EXPECT_EQ(sums(1), sums(3));
}

TEST(Reduce, TakesADtype) {
  const Tensor x = tensor({1, 2, 4});

  EXPECT_EQ(sum(x, {}, {.dtype = float64}).dtype(), float64);
  EXPECT_EQ(sum(x, 0, {.dtype = int32}).dtype(), int32);
  EXPECT_EQ(mean(x, 0, {.keepdim = true, .dtype = float64}).to_vector<double>(),
            std::vector<double>({7.0 / 3}));
  EXPECT_EQ(prod(x, 0, {.dtype = uint8}).item<int64_t>(), 8);
}

TEST(Reduce, TruthOverSeveralDims) {
  const Tensor x = tensor({{{true, false}}, {{false, false}}});

  EXPECT_EQ(any(x, {1, 2}).to_vector<int64_t>(), std::vector<int64_t>({1, 0}));
  EXPECT_EQ(all(x, {0, 1}, {.keepdim = true}).shape(), Shape({1, 1, 2}));
}

}  // namespace
}  // namespace flow
