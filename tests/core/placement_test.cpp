#include "core/placement.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow {
namespace {

TEST(Placement, EqualContentIsTheSameObject) {
  const Placement a("cpu", {0, 1}), b("cpu", std::vector<int64_t>{0, 1});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.id(), b.id());
  EXPECT_NE(a, Placement("cpu", {1, 0}));
  EXPECT_NE(a, Placement("cuda", {0, 1}));
  EXPECT_EQ(Placement("gpu", {0, 1}), Placement("cuda", {0, 1}));
}

TEST(Placement, NestedBracesGiveAxes) {
  const Placement grid("cpu", {{0, 1, 2}, {3, 4, 5}});
  EXPECT_EQ(grid.shape(), (Shape{2, 3}));
  EXPECT_EQ(str(grid), "cpu:((0, 1, 2), (3, 4, 5))");
  EXPECT_EQ(grid.position(4), 4);
  EXPECT_EQ(grid.coordinate(4, 0), 1);
  EXPECT_EQ(grid.coordinate(4, 1), 1);
  EXPECT_EQ(grid.group_along(4, 0), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(grid.group_along(4, 1), (std::vector<int64_t>{3, 4, 5}));
}

TEST(Placement, BadRanksAreRefused) {
  EXPECT_THROW(Placement("cpu", {0, 0}), InvalidArgument);
  EXPECT_THROW(Placement("cpu", {-1}), InvalidArgument);
  EXPECT_THROW(Placement("cpu", std::vector<int64_t>{}), InvalidArgument);
  EXPECT_THROW(Placement("cpu", {{0, 1}, {2}}), InvalidArgument);
  EXPECT_THROW(Placement("tpu", {0}), InvalidArgument);
}

TEST(Placement, DefaultMeansLocal) {
  EXPECT_FALSE(Placement().defined());
  EXPECT_EQ(str(Placement()), "local");
}

}  // namespace
}  // namespace flow
