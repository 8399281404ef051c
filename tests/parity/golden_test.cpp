#include "tests/parity/golden.h"

#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace flow::parity {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(RelativeDistance, IsMeasuredByTheLargestElementHoweverSmall) {
  EXPECT_EQ(relative_distance({1, 2}, {1, 2}), 0);
  EXPECT_EQ(relative_distance({1, 5}, {1, 4}), 0.25);
  EXPECT_DOUBLE_EQ(relative_distance({1e-9, 5e-9}, {1e-9, 4e-9}), 0.25);
  EXPECT_EQ(relative_distance({0}, {0}), 0);
  EXPECT_EQ(relative_distance({1e-30}, {0}), kInfinity);
  EXPECT_EQ(relative_distance({}, {}), 0);
  EXPECT_EQ(relative_distance({1}, {1, 1}), kInfinity);
}

TEST(RelativeDistance, AMatchingInfinityHidesNothing) {
  EXPECT_EQ(relative_distance({kInfinity, 1}, {kInfinity, 1}), 0);
  EXPECT_EQ(relative_distance({kInfinity, 3}, {kInfinity, 2}), 0.5);
  EXPECT_EQ(relative_distance({kNan, 3}, {kNan, 2}), 0.5);
  for (const auto& [a, b] :
       {std::pair(kInfinity, -kInfinity), std::pair(kInfinity, 1.0), std::pair(1.0, kInfinity),
        std::pair(kNan, 1.0), std::pair(1.0, kNan), std::pair(kInfinity, kNan)}) {
    EXPECT_EQ(relative_distance({a, 1}, {b, 1}), kInfinity) << a << ' ' << b;
  }
}

}  // namespace
}  // namespace flow::parity
