#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow {
namespace {

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ(str(Shape{}), "()");
  EXPECT_EQ(str(Shape{4}), "(4,)");
  EXPECT_EQ(str(Shape{4, 8}), "(4, 8)");
}

TEST(Shape, InsertAndEraseKeepTheOrder) {
  Shape shape{2, 3};
  shape.insert(1, 5);
  EXPECT_EQ(shape, (Shape{2, 5, 3}));
  shape.erase(0);
  EXPECT_EQ(shape, (Shape{5, 3}));
}

TEST(Shape, RefusesMoreDimsThanATensorMayHave) {
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), InvalidArgument);
}

TEST(Shape, StridesAreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Strides{4, 4, 1}));
}

TEST(Shape, BroadcastsFromTheRight) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}, "op"), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes({2, 3}, {0, 1, 1}, "op"), (Shape{0, 2, 3}));
  try {
    broadcast_shapes({2, 3}, {2, 4}, "add");
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("[add] shapes do not broadcast: (2, 3) and (2, 4)"),
              std::string::npos)
        << error.what();
  }
}

TEST(Shape, NegativeDimsCountFromTheEnd) {
  EXPECT_EQ(normalize_dim(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_dim(-1, 0, "op"), 0);
  EXPECT_THROW(normalize_dim(3, 3, "op"), InvalidArgument);
  EXPECT_THROW(normalize_dim(-4, 3, "op"), InvalidArgument);
}

}  // namespace
}  // namespace flow
