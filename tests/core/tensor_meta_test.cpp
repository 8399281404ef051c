#include "core/tensor_meta.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow {
namespace {

TEST(TensorMeta, EqualMetasAreOneObject) {
  EXPECT_EQ(local_meta({2, 3}, float32, DeviceType::kCpu),
            local_meta({2, 3}, float32, DeviceType::kCpu));
  EXPECT_NE(local_meta({2, 3}, float32, DeviceType::kCpu),
            local_meta({3, 2}, float32, DeviceType::kCpu));
  EXPECT_NE(local_meta({2, 3}, float32, DeviceType::kCpu),
            local_meta({2, 3}, float64, DeviceType::kCpu));
}

TEST(TensorMeta, StridesOfUnitDimsDoNotMatter) {
  const MetaPtr odd = strided_meta({1, 3}, {77, 1}, float32, DeviceType::kCpu);
  EXPECT_EQ(odd, local_meta({1, 3}, float32, DeviceType::kCpu));
  EXPECT_TRUE(odd->is_contiguous);
  EXPECT_FALSE(strided_meta({3, 2}, {1, 3}, float32, DeviceType::kCpu)->is_contiguous);
}

TEST(TensorMeta, SizesThatOverflowAreRefused) {
  EXPECT_THROW(local_meta({4194305, 4194305, 211106198978564}, float32, DeviceType::kCpu),
               InvalidArgument);
  EXPECT_THROW(local_meta({-1}, float32, DeviceType::kCpu), InvalidArgument);
  EXPECT_EQ(local_meta({int64_t{1} << 60, 0, int64_t{1} << 60}, float32, DeviceType::kCpu)->numel,
            0);
}

TEST(BalancedPart, CoversWithoutOverlapAndDiffersByAtMostOne) {
  for (int64_t size = 0; size < 20; ++size) {
    for (int64_t parts = 1; parts < 9; ++parts) {
      int64_t next = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Range range = balanced_part(size, parts, i);
        EXPECT_EQ(range.begin, next);
        EXPECT_TRUE(range.size == size / parts || range.size == size / parts + 1);
        next += range.size;
      }
      EXPECT_EQ(next, size);
    }
  }
}

TEST(TensorMeta, UnevenSplitGivesTheFirstRanksOneMore) {
  const Placement three("cpu", {4, 5, 6});
  EXPECT_EQ(global_meta({7, 2}, float32, three, sbp::split(0), 4)->local_shape, (Shape{3, 2}));
  const MetaPtr last = global_meta({7, 2}, float32, three, sbp::split(0), 6);
  EXPECT_EQ(last->local_shape, (Shape{2, 2}));
  EXPECT_EQ(last->local_begin, (Shape{5, 0}));
  EXPECT_FALSE(global_meta({7, 2}, float32, three, sbp::split(0), 0)->is_held);
  EXPECT_EQ(global_meta({1, 2}, float32, three, sbp::split(0), 6)->local_shape, (Shape{0, 2}));
}

// The boxes of all ranks cover each element exactly once, whatever the nesting of splits.
TEST(TensorMeta, BoxesOfNestedSplitsTileTheTensor) {
  std::mt19937 random(5);
  const Placement grid("cpu", {{0, 1, 2}, {3, 4, 5}});
  for (int round = 0; round < 200; ++round) {
    const Shape shape{static_cast<int64_t>(random() % 8), static_cast<int64_t>(random() % 8)};
    const NdSbp layout({sbp::split(random() % 2), sbp::split(random() % 2)});
    std::vector<int> count(static_cast<size_t>(shape.numel()), 0);
    for (int64_t position = 0; position < 6; ++position) {
      const Box box = box_of(shape, grid, layout, position);
      for (int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
        for (int64_t j = box.begin[1]; j < box.begin[1] + box.size[1]; ++j) {
          ++count[static_cast<size_t>(i * shape[1] + j)];
        }
      }
    }
    for (const int c : count)
      ASSERT_EQ(c, 1) << shape << ' ' << layout;
  }
}

TEST(TensorMeta, LayoutsThatDoNotFitAreRefused) {
  const Placement two("cpu", {0, 1});
  EXPECT_THROW(global_meta({2}, float32, two, NdSbp({sbp::broadcast, sbp::broadcast}), 0),
               InvalidArgument);
  EXPECT_THROW(global_meta({2}, float32, two, sbp::split(1), 0), InvalidArgument);
}

}  // namespace
}  // namespace flow
