#include "tests/support/largest_difference.h"

#include <cmath>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "ops/creation/creation.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

TEST(LargestDifference, IsThatOfTwoElementsAtTheSamePlace) {
  EXPECT_EQ(largest_difference(Doubles{1, 2, 3}, Doubles{1, 4, 2}), 2);
  EXPECT_EQ(largest_difference(Doubles{}, Doubles{}), 0);
}

TEST(LargestDifference, IsInfiniteWhereAnElementIsNaN) {
  EXPECT_EQ(largest_difference(Doubles{1, NAN, 3}, Doubles{1, 2, 3}), HUGE_VAL);
  EXPECT_EQ(largest_difference(Doubles{1, 2, 3}, Doubles{1, 2, NAN}), HUGE_VAL);
  EXPECT_EQ(largest_difference(Doubles{NAN}, Doubles{NAN}), HUGE_VAL);
}

TEST(LargestDifference, OfRowsFindsNaN) {
  const Tensor actual = tensor({{1, 2}, {3, NAN}});

  EXPECT_NONFATAL_FAILURE(expect_rows(actual, {1, 2, 3, 4}, 2, 1e-6), "row 1 of 2");
}

}  // namespace
}  // namespace flow
