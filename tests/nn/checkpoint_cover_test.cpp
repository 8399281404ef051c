// Finding overlaps of slices, compared with looking at all pairs.
#include "nn/checkpoint_cover.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/layout.h"

namespace flow::nn {
namespace {

bool overlap_by_pairs(const std::vector<CheckpointSlice>& slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (boxing::intersection(slices[i].box, slices[j].box).size.numel() > 0) return true;
    }
  }
  return false;
}

TEST(CheckpointCover, RandomBoxesAreJudgedAsByLookingAtAllPairs) {
  std::mt19937 random(7);
  const auto below = [&](int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(random);
  };
  int num_overlapping = 0;
  for (int round = 0; round < 3000; ++round) {
    const int64_t dims = below(4), count = below(7);
    std::vector<CheckpointSlice> slices;
    for (int64_t i = 0; i < count; ++i) {
      CheckpointSlice slice;
      for (int64_t dim = 0; dim < dims; ++dim) {
        slice.box.begin.push_back(below(8));
        slice.box.size.push_back(below(4));
      }
      slices.push_back(slice);
    }
    const bool expected = overlap_by_pairs(slices);
    EXPECT_EQ(have_overlap(slices), expected) << "round " << round;
    num_overlapping += expected;
  }
  EXPECT_GT(num_overlapping, 300);
  EXPECT_LT(num_overlapping, 2700);
}

// No straight cut separates these five boxes of a 3 × 3 square.
TEST(CheckpointCover, APinwheelHasNoOverlap) {
  const std::vector<Box> boxes = {
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}};
  std::vector<CheckpointSlice> slices;
  for (const Box& box : boxes)
    slices.push_back({.box = box});

  EXPECT_FALSE(have_overlap(slices));
  slices.push_back({.box = {{1, 1}, {1, 1}}});
  EXPECT_TRUE(have_overlap(slices));
}

}  // namespace
}  // namespace flow::nn
