#include "ops/index/selection.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/count.h"
#include "ops/index/sort.h"
#include "ops/random/multinomial.h"
#include "ops/shape/arrange.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(Selection, NanIsInNothing) {
  EXPECT_EQ(isin(tensor({1.F, NAN}), tensor({NAN, 1.F})).to_vector<bool>(),
            (std::vector<bool>{true, false}));
}

TEST(Multinomial, DrawsWithoutReplacementAreAPermutationOfThePositive) {
  manual_seed(7);
  const Tensor p = tensor({0.F, 3.F, 1.F, 2.F});

  const Tensor y = multinomial(p, 3);

  EXPECT_EQ(sort(y).values.to_vector<int64_t>(), (Longs{1, 2, 3}));
  EXPECT_THROW(multinomial(p, 5), InvalidArgument);
}

TEST(Multinomial, FrequenciesFollowTheWeights) {
  manual_seed(8);
  const Tensor p = tensor({{1.F, 0.F, 3.F}, {0.F, 2.F, 2.F}});

  const Tensor y = multinomial(p, 4000, {.replacement = true});

  EXPECT_EQ(y.shape(), (Shape{2, 4000}));
  const auto first = bincount(y.select(0, 0), {.minlength = 3}).to_vector<int64_t>();
  EXPECT_EQ(first[1], 0);
  EXPECT_NEAR(static_cast<double>(first[2]), 3000, 150);
  EXPECT_EQ(bincount(y.select(0, 1), {.minlength = 3}).to_vector<int64_t>()[0], 0);
}

TEST(Multinomial, OneDrawOfEachRowFollowsTheWeights) {
  manual_seed(9);
  const Tensor p = tensor({1.F, 3.F}).expand({4000, 2});

  const auto counts = bincount(multinomial(p, 1).reshape({-1})).to_vector<int64_t>();

  EXPECT_NEAR(static_cast<double>(counts[1]), 3000, 150);
}

TEST(Multinomial, ManyClassesOf16BitsAreDrawnEvenly) {
  for (const DType dtype : {bfloat16, float16}) {
    manual_seed(10);
    const Tensor p = ones({4096}, {.dtype = dtype}).expand({800, 4096});

    const Tensor quarters = multinomial(p, 1).reshape({-1}).to(float64) / 1024;

    for (const int64_t count : bincount(quarters.to(int64)).to_vector<int64_t>())
      EXPECT_NEAR(static_cast<double>(count), 200, 40) << dtype;
  }
}

TEST(Multinomial, SumsOf16BitWeightsLeaveNoClassOut) {
  for (const DType dtype : {bfloat16, float16}) {
    manual_seed(11);
    const Tensor p = full({4096}, 1.0 / 4096, {.dtype = dtype});

    const Tensor y = multinomial(p, 200000, {.replacement = true});

    EXPECT_GT(bincount(y, {.minlength = 4096}).min().item<int64_t>(), 0) << dtype;
  }
}

TEST(Selection, EvenSplitsAreEven) {
  EXPECT_EQ(hsplit(zeros({2, 4}), 2)[1].shape(), (Shape{2, 2}));
  EXPECT_THROW(hsplit(zeros({2, 3}), 2), InvalidArgument);
  EXPECT_THROW(vsplit(zeros({4}), 2), InvalidArgument);
}

}  // namespace
}  // namespace flow
