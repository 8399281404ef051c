#include "ops/linear/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "ops/linear/gemm_backend.h"
#include "ops/linear/gemm_split.h"
#include "ops/linear/gemm_table.h"
#include "ops/vendor/openblas.h"
#include "tests/support/gemm_product.h"

namespace flow::ops {
namespace {

constexpr Transpose kBothTransposes[] = {Transpose::kNo, Transpose::kYes};

// Terms are in [-1, 1], so partial sums stay well below k / 4 and each addition rounds by half an
// epsilon of one.
template <class T>
double tolerance(int64_t k) {
  return static_cast<double>(std::numeric_limits<T>::epsilon()) * (static_cast<double>(k) + 16.0);
}

template <class T>
class Gemm : public testing::Test {};

using ElementTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, ElementTypes);

TYPED_TEST(Gemm, MultipliesRowMajorMatrices) {
  const TypeParam a[] = {1, 2, 3, 4, 5, 6};     // (2, 3)
  const TypeParam b[] = {7, 8, 9, 10, 11, 12};  // (3, 2)
  TypeParam c[4] = {};

  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2);

  EXPECT_EQ(std::vector<TypeParam>(c, c + 4), (std::vector<TypeParam>{58, 64, 139, 154}));
}

TYPED_TEST(Gemm, TransposeReadsTheOperandByColumns) {
  const TypeParam a[] = {1, 4, 2, 5, 3, 6};     // (3, 2), op(A) = (2, 3)
  const TypeParam b[] = {7, 9, 11, 8, 10, 12};  // (2, 3), op(B) = (3, 2)
  TypeParam c[4] = {};

  gemm<TypeParam>(Transpose::kYes, Transpose::kYes, 2, 2, 3, 1, a, 2, b, 3, 0, c, 2);

  EXPECT_EQ(std::vector<TypeParam>(c, c + 4), (std::vector<TypeParam>{58, 64, 139, 154}));
}

TYPED_TEST(Gemm, AlphaScalesTheProductAndBetaTheOldValue) {
  const TypeParam a[] = {1, 2};
  const TypeParam b[] = {3, 4};
  TypeParam c[] = {100};

  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 1, 1, 2, 2, a, 2, b, 1, 0.5, c, 1);

  EXPECT_EQ(c[0], TypeParam{72});  // 2 * 11 + 0.5 * 100
}

TYPED_TEST(Gemm, EmptySumScalesC) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  TypeParam kept[] = {2, 4};
  TypeParam cleared[] = {nan, nan};

  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 1, 2, 0, 1, nullptr, 0, nullptr, 2, 3, kept, 2);
  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 1, 2, 0, 1, nullptr, 0, nullptr, 2, 0, cleared,
                  2);

  EXPECT_EQ(kept[0], TypeParam{6});
  EXPECT_EQ(kept[1], TypeParam{12});
  EXPECT_EQ(cleared[0], TypeParam{0});
  EXPECT_EQ(cleared[1], TypeParam{0});
}

TYPED_TEST(Gemm, EmptyResultTouchesNothing) {
  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 0, 3, 2, 1, nullptr, 2, nullptr, 3, 0, nullptr,
                  3);
  gemm<TypeParam>(Transpose::kNo, Transpose::kNo, 3, 0, 2, 1, nullptr, 2, nullptr, 0, 0, nullptr,
                  0);
}

// Sizes on both sides of the limits of register tiles, of the depth and row blocks of flow's own
// kernel, and of its column panel. The longest sums have a part that is neither the first nor the
// last.
TYPED_TEST(Gemm, EveryBackendAgreesWithTheReference) {
  const std::vector<std::tuple<int64_t, int64_t, int64_t>> sizes = {
      {1, 1, 1},      {4, 4, 4},      {3, 5, 7},        {1, 70, 33},    {70, 1, 33},
      {17, 15, 2},    {16, 32, 64},   {31, 33, 9},      {29, 47, 65},   {64, 64, 64},
      {5, 200, 300},  {200, 5, 300},  {85, 90, 257},    {169, 97, 40},  {7, 2100, 3},
      {130, 67, 520}, {30, 530, 520}, {200, 1030, 270}, {85, 70, 1100}, {30, 130, 1100}};
  for (const GemmBackend backend :
       {GemmBackend::kOwn, GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
    if (!has_gemm_backend<TypeParam>(backend)) continue;
    for (const auto& [m, n, k] : sizes) {
      for (const Transpose ta : kBothTransposes) {
        for (const Transpose tb : kBothTransposes) {
          Product<TypeParam> product(ta, tb, m, n, k, 3);

          gemm_with(backend, product.task);

          ASSERT_LE(product.error(), tolerance<TypeParam>(k))
              << "back end " << static_cast<int>(backend) << ": " << m << "x" << n << "x" << k
              << " " << static_cast<int>(ta) << static_cast<int>(tb);
        }
      }
    }
  }
}

// Blocked kernels, with every number of remaining rows and columns of a tile; the wider products
// pack A.
TYPED_TEST(Gemm, OwnKernelAgreesWithTheReferenceAtEveryRemainderOfATile) {
  for (int64_t left = 1; left <= 33; ++left) {
    for (const int64_t columns : {96, 192}) {
      for (const Transpose ta : kBothTransposes) {
        for (const Transpose tb : kBothTransposes) {
          Product<TypeParam> product(ta, tb, left, columns + left, 97, 1);

          gemm_with(GemmBackend::kOwn, product.task);

          ASSERT_LE(product.error(), tolerance<TypeParam>(97))
              << left << "x" << columns + left << " " << static_cast<int>(ta)
              << static_cast<int>(tb);
        }
      }
    }
  }
}

TYPED_TEST(Gemm, OwnKernelReadsRowsThatLieFarApart) {
  constexpr int64_t kPadding = 5000;
  for (const Transpose ta : kBothTransposes) {
    for (const Transpose tb : kBothTransposes) {
      Product<TypeParam> product(ta, tb, 45, 110, 130, kPadding);

      gemm_with(GemmBackend::kOwn, product.task);

      EXPECT_LE(product.error(), tolerance<TypeParam>(130))
          << static_cast<int>(ta) << static_cast<int>(tb);
    }
  }
}

// Beyond the direct kernel, few rows are multiplied without packing B: all numbers of rows, sums
// that do not fill the last pass, and columns that end in the middle of a vector.
TYPED_TEST(Gemm, FewRowsReadBInPlace) {
  for (const Transpose ta : kBothTransposes) {
    for (int64_t m = 1; m <= 34; ++m) {
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1100 + m, 27}, {67 + m, 600 + m}}) {
        for (const double beta : {0.0, 1.0, -0.5}) {
          Product<TypeParam> product(ta, Transpose::kNo, m, n, k, 3);
          product.task.alpha = TypeParam{2};
          product.task.beta = static_cast<TypeParam>(beta);
          if (beta != 0) std::fill(product.c.begin(), product.c.end(), TypeParam{0.25});
          Product<TypeParam> expected = product.copy();
          gemm_with(GemmBackend::kReference, expected.task);

          gemm_with(GemmBackend::kOwn, product.task);

          const auto own = product.results(), reference = expected.results();
          for (size_t i = 0; i < own.size(); ++i) {
            ASSERT_NEAR(own[i], reference[i], 2 * tolerance<TypeParam>(k))
                << m << ' ' << n << ' ' << k << ' ' << static_cast<int>(ta) << ' ' << beta;
          }
        }
      }
    }
  }
}

// Few rows or few columns of operands that are contiguous along k, or of which the smaller one is
// copied; a column of C that is contiguous.
TYPED_TEST(Gemm, FewRowsOrColumnsAreDotProducts) {
  for (const Transpose ta : kBothTransposes) {
    for (const Transpose tb : kBothTransposes) {
      for (int64_t few = 1; few <= 18; ++few) {
        for (const int64_t many : {1, 7, 20, 43}) {
          for (const auto& [m, n] : {std::pair(few, many), std::pair(many, few)}) {
            for (const int64_t k : {15, 16, 35, 301}) {
              const int64_t padding = (few + k) % 2 * 3;
              Product<TypeParam> product(ta, tb, m, n, k, padding);
              product.task.alpha = TypeParam{2};
              if (k % 2 == 1) {
                product.task.beta = TypeParam{-0.5};
                std::fill(product.c.begin(), product.c.end(), TypeParam{0.25});
              }
              Product<TypeParam> expected = product.copy();
              gemm_with(GemmBackend::kReference, expected.task);

              gemm_with(GemmBackend::kOwn, product.task);

              const auto own = product.results(), reference = expected.results();
              for (size_t i = 0; i < own.size(); ++i) {
                ASSERT_NEAR(own[i], reference[i], 2 * tolerance<TypeParam>(k))
                    << m << ' ' << n << ' ' << k << ' ' << static_cast<int>(ta)
                    << static_cast<int>(tb);
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, ADotProductHasTheSameBitsAtEveryPlace) {
  constexpr int64_t kM = 11, kN = 27, kK = 333;
  Product<TypeParam> product(Transpose::kNo, Transpose::kYes, kM, kN, kK);
  gemm_with(GemmBackend::kOwn, product.task);
  const auto all = product.results();
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      TypeParam one = 0;
      GemmTask<TypeParam> task = product.task;
      task.m = task.n = 1;
      task.a += i * task.lda;
      task.b += j * task.ldb;
      task.c = &one;
      gemm_with(GemmBackend::kOwn, task);

      ASSERT_EQ(static_cast<double>(one), static_cast<double>(all[static_cast<size_t>(i * kN + j)]))
          << i << ' ' << j;
    }
  }
}

// A NaN in one row of A and one column of B reaches those of C and no others, also where edges of
// tiles are filled up.
TYPED_TEST(Gemm, EveryBackendKeepsNanWhereItBelongs) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const GemmBackend backend :
       {GemmBackend::kOwn, GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
    if (!has_gemm_backend<TypeParam>(backend)) continue;
    constexpr int64_t kM = 31;
    constexpr int64_t kN = 99;
    constexpr int64_t kK = 110;
    Product<TypeParam> product(Transpose::kNo, Transpose::kNo, kM, kN, kK);
    product.a[30 * kK + 7] = nan;
    product.b[9 * kN + 98] = nan;

    gemm_with(backend, product.task);

    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        ASSERT_EQ(std::isnan(product.c[static_cast<size_t>(i * kN + j)]), i == 30 || j == 98)
            << "back end " << static_cast<int>(backend) << " at " << i << ", " << j;
      }
    }
  }
}

TYPED_TEST(Gemm, EveryBackendAppliesAlphaAndBeta) {
  for (const GemmBackend backend :
       {GemmBackend::kReference, GemmBackend::kOwn, GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
    if (!has_gemm_backend<TypeParam>(backend)) continue;
    for (const int64_t size : {3, 40, 300}) {
      const auto count = static_cast<std::size_t>(size * size);
      const std::vector<TypeParam> a(count, TypeParam{1});
      const std::vector<TypeParam> b(count, TypeParam{2});
      std::vector<TypeParam> c(count, TypeParam{8});

      gemm_with(backend, GemmTask<TypeParam>{.m = size,
                                             .n = size,
                                             .k = size,
                                             .alpha = TypeParam{0.5},
                                             .a = a.data(),
                                             .lda = size,
                                             .b = b.data(),
                                             .ldb = size,
                                             .beta = TypeParam{0.25},
                                             .c = c.data(),
                                             .ldc = size});

      const std::vector<TypeParam> expected(count, static_cast<TypeParam>(size) + 2);
      EXPECT_EQ(c, expected) << "back end " << static_cast<int>(backend) << ", size " << size;
    }
  }
}

TYPED_TEST(Gemm, BatchMovesByItsStridesAndSharesAnOperandOfStrideZero) {
  const TypeParam a[] = {1, 2, 3, 4};
  const TypeParam b[] = {10, 100};
  TypeParam c[] = {-1, -1, -1};

  gemm_batched(GemmTask<TypeParam>{.m = 1,
                                   .n = 1,
                                   .k = 2,
                                   .a = a,
                                   .lda = 2,
                                   .b = b,
                                   .ldb = 1,
                                   .c = c,
                                   .ldc = 1,
                                   .batch = 2,
                                   .a_stride = 2,
                                   .b_stride = 0,
                                   .c_stride = 2});

  EXPECT_EQ(std::vector<TypeParam>(c, c + 3), (std::vector<TypeParam>{210, -1, 430}));
}

TEST(GemmSplit, SmallProductsStayWhole) {
  EXPECT_EQ(split_gemm(1, 64, 64, 64).cells(), 1);
  EXPECT_EQ(split_gemm(1, 32, 128, 100000).cells(), 1);
  EXPECT_EQ(split_gemm(1, 0, 64, 64).cells(), 0);
  EXPECT_EQ(split_gemm(0, 8, 8, 8).cells(), 0);
}

TEST(GemmSplit, CutsBatchesBetweenProducts) {
  const GemmSplit split = split_gemm(64, 128, 128, 32);

  EXPECT_FALSE(split.shares_packing);
  EXPECT_EQ(split.cell_batch, 16);
  EXPECT_EQ(split.cells(), 4);
}

TEST(GemmSplit, CutsFlatProductsAlongTheirLength) {
  const GemmSplit split = split_gemm(1, 64, 1030, 512);

  EXPECT_FALSE(split.shares_packing);
  EXPECT_EQ(split.cell_m, 64);
  EXPECT_EQ(split.cell_n, 258);
  EXPECT_EQ(split.cells(), 4);
}

TEST(GemmSplit, SharesLargeProducts) {
  EXPECT_TRUE(split_gemm(1, 256, 256, 256).shares_packing);
  EXPECT_TRUE(split_gemm(3, 512, 512, 64).shares_packing);
  EXPECT_FALSE(split_gemm(16, 512, 512, 64).shares_packing);
}

// Products of each kind of split: shared with parts of k and panels of columns, cells of columns,
// of rows, of a batch.
TYPED_TEST(Gemm, ParallelResultDoesNotDependOnWhoComputesWhat) {
  const auto a_thread_each = [](int64_t begin, int64_t end, int64_t, const auto& fn) {
    std::vector<std::jthread> threads;
    for (int64_t i = begin; i < end; ++i)
      threads.emplace_back([&fn, i] { fn(i, i + 1); });
  };
  constexpr Transpose kNo = Transpose::kNo;
  constexpr Transpose kYes = Transpose::kYes;
  const std::vector<std::tuple<Transpose, Transpose, int64_t, int64_t, int64_t>> products = {
      {kNo, kNo, 130, 140, 515},   {kYes, kNo, 130, 140, 515},  {kNo, kYes, 130, 140, 515},
      {kYes, kYes, 130, 140, 515}, {kNo, kNo, 2100, 100, 45},   {kNo, kYes, 100, 2100, 45},
      {kYes, kNo, 16, 1030, 1024}, {kNo, kYes, 1030, 16, 1024}, {kNo, kYes, 130, 140, 1100}};
  for (const auto& [ta, tb, m, n, k] : products) {
    Product<TypeParam> serial(ta, tb, m, n, k, 1);
    Product<TypeParam> threaded(ta, tb, m, n, k, 1);

    gemm_parallel(one_thread, serial.task);
    gemm_parallel(a_thread_each, threaded.task);

    ASSERT_NE(split_gemm(1, m, n, k).shares_packing, split_gemm(1, m, n, k).cells() > 1);
    EXPECT_LE(serial.error(), tolerance<TypeParam>(k)) << m << "x" << n << "x" << k;
    EXPECT_EQ(serial.results(), threaded.results()) << m << "x" << n << "x" << k;
  }
}

TYPED_TEST(Gemm, SharedProductOfABatchEqualsTheOwnKernel) {
  const auto halves = [](int64_t begin, int64_t end, int64_t, const auto& fn) {
    fn((begin + end) / 2, end);
    fn(begin, (begin + end) / 2);
  };
  Product<TypeParam> both(Transpose::kNo, Transpose::kNo, 400, 250, 300);
  Product<TypeParam> own = both.copy();
  both.task.m = 200;
  both.task.batch = 2;
  both.task.a_stride = 200 * 300;
  both.task.c_stride = 200 * 250;

  gemm_parallel(halves, both.task);
  gemm_with(GemmBackend::kOwn, own.task);

  ASSERT_TRUE(split_gemm(2, 200, 250, 300).shares_packing);
  EXPECT_EQ(both.results(), own.results());
}

// There is one part of k, so that the bias is added to the whole sum.
TYPED_TEST(Gemm, BiasIsAddedToEachRow) {
  const auto halves = [](int64_t begin, int64_t end, int64_t, const auto& fn) {
    fn((begin + end) / 2, end);
    fn(begin, (begin + end) / 2);
  };
  std::vector<TypeParam> bias;
  for (int j = 0; j < 275; ++j)
    bias.push_back(static_cast<TypeParam>(j) / 64);
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{5, 7, 3}, {203, 275, 200}, {2000, 20, 90}}) {
    Product<TypeParam> plain(Transpose::kNo, Transpose::kYes, m, n, k, 3);
    Product<TypeParam> biased = plain.copy();
    biased.task.bias = bias.data();

    gemm_parallel(halves, plain.task);
    gemm_parallel(halves, biased.task);

    std::vector<TypeParam> expected = plain.results();
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += bias[i % static_cast<size_t>(n)];
    const std::vector<TypeParam> actual = biased.results();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], tolerance<TypeParam>(k)) << m << "x" << n << " at " << i;
  }
}

TEST(GemmTable, SizesBelongToTheNearestClass) {
  for (int i = 0; i < kGemmSizeClasses; ++i) {
    EXPECT_EQ(gemm_size_class(kGemmClassSizes[i]), i);
  }
  EXPECT_EQ(gemm_size_class(3), 0);
  EXPECT_EQ(gemm_size_class(4), 1);
  EXPECT_EQ(gemm_size_class(12), 1);
  EXPECT_EQ(gemm_size_class(48), 3);
  EXPECT_EQ(gemm_size_class(49), 4);
  EXPECT_EQ(gemm_size_class(1537), 9);
  EXPECT_EQ(gemm_size_class(int64_t{1} << 40), 9);
}

TEST(GemmLibraries, StartNoThreads) {
  const auto count_threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = count_threads();

  for (const GemmBackend backend : {GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
    if (!has_gemm_backend<float>(backend)) continue;
    Product<float> product(Transpose::kNo, Transpose::kNo, 512, 512, 64);
    gemm_with(backend, product.task);
  }

  EXPECT_EQ(count_threads(), before);
}

TEST(GemmLibraries, OpenBlasMustHaveChosenKernelsForTheCpu) {
  const std::string build = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY ";
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    EXPECT_FALSE(openblas_suits(build + "Prescott MAX_THREADS=64", isa));
    EXPECT_FALSE(openblas_suits(build + "SandyBridge", isa));
    EXPECT_TRUE(openblas_suits(build + "SkylakeX MAX_THREADS=64", isa));
    EXPECT_TRUE(openblas_suits(build + "Zen MAX_THREADS=64", isa));
  }
  EXPECT_TRUE(openblas_suits(build + "Prescott MAX_THREADS=64", CpuIsa::kBaseline));
}

}  // namespace
}  // namespace flow::ops
