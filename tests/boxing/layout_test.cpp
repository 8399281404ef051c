#include "boxing/layout.h"

#include <gtest/gtest.h>

namespace flow::boxing {
namespace {

const Placement kPair("cpu", {0, 1});
const Placement kOthers("cpu", {2, 3});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;
const Sbp kP = sbp::partial_sum;

TEST(GradientSbp, IsWholeForAPartialTensor) {
  for (const Sbp gradient : {kB, kP, kS0})
    EXPECT_EQ(gradient_sbp({kPair, kP}, {kPair, gradient}), NdSbp(kB));
}

TEST(GradientSbp, IsSplitAsTheTensorIs) {
  for (const Sbp gradient : {kB, kP, kS0, kS1})
    EXPECT_EQ(gradient_sbp({kPair, kS0}, {kPair, gradient}), NdSbp(kS0));
}

TEST(GradientSbp, OfABroadcastTensorStaysAsItComes) {
  for (const Sbp gradient : {kB, kP, kS0})
    EXPECT_EQ(gradient_sbp({kPair, kB}, {kPair, gradient}), NdSbp(gradient));
  EXPECT_EQ(gradient_sbp({kPair, kB}, {kOthers, kS0}), NdSbp(kS0));
}

TEST(GradientSbp, IsSummedBeforeItLeavesAPlacement) {
  EXPECT_EQ(gradient_sbp({kPair, kB}, {kOthers, kP}), NdSbp(kB));
}

TEST(GradientSbp, IsDecidedAxisByAxis) {
  EXPECT_EQ(gradient_sbp({kGrid, {kP, kB}}, {kGrid, {kS0, kS1}}), NdSbp({kB, kS1}));
  EXPECT_EQ(gradient_sbp({kGrid, {kS0, kP}}, {kGrid, {kP, kP}}), NdSbp({kS0, kB}));
}

}  // namespace
}  // namespace flow::boxing
