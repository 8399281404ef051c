#include "boxing/route.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/planner.h"
#include "boxing/rank_route.h"
#include "boxing/run_route.h"
#include "boxing/transfer_log.h"
#include "tests/support/redistribute_cases.h"

namespace flow {
namespace {

using boxing::find_route;
using boxing::Layout;
using boxing::Region;
using boxing::Route;
using boxing::RouteStepKind;

const Placement kPair("cpu", {0, 1});
const Placement kFour("cpu", {0, 1, 2, 3});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;
const Sbp kP = sbp::partial_sum;

std::vector<RouteStepKind> kinds(const Route& route) {
  std::vector<RouteStepKind> result;
  for (const boxing::RouteStep& step : route.steps)
    result.push_back(step.kind);
  return result;
}

std::vector<RouteStepKind> route(const Shape& shape, const Layout& from, const Layout& to) {
  return kinds(find_route(shape, float32, from, to));
}

TEST(Planner, OneStepAlongOneAxisIsNamedAfterItsCollective) {
  const Shape shape{8, 6};
  using Kinds = std::vector<RouteStepKind>;
  EXPECT_EQ(route(shape, {kPair, kB}, {kPair, kS0}), Kinds{RouteStepKind::kSlice});
  EXPECT_EQ(route(shape, {kPair, kB}, {kPair, kP}), Kinds{RouteStepKind::kZeroPad});
  EXPECT_EQ(route(shape, {kPair, kS1}, {kPair, kP}), Kinds{RouteStepKind::kZeroPad});
  EXPECT_EQ(route(shape, {kPair, kP}, {kPair, kB}), Kinds{RouteStepKind::kAllReduce});
  EXPECT_EQ(route(shape, {kPair, kP}, {kPair, kS1}), Kinds{RouteStepKind::kReduceScatter});
  EXPECT_EQ(route(shape, {kPair, kS0}, {kPair, kB}), Kinds{RouteStepKind::kAllGather});
  EXPECT_EQ(route(shape, {kPair, kS0}, {kPair, kS1}), Kinds{RouteStepKind::kAllToAll});
}

TEST(TransferLog, CountsTheRunsOfEachRouteOfALine) {
  boxing::TransferLog log;
  const auto add = [&](const Route& route, double took_us) {
    log.add(Site::here(), route, took_us);
  };
  for (const double took_us : {3.0, 1.0, 2.0}) {
    for (int64_t size = 1; size <= 100; ++size)
      add(find_route({size}, float32, {kPair, kS0}, {kPair, kB}), took_us);
    add(find_route({8}, float64, {kPair, kS0}, {kPair, kB}), took_us);
    add(find_route({8}, float32, {kPair, kP}, {kPair, kB}), took_us);
    add(find_route({8}, float32, {kPair, kP}, {kPair, kS0}), took_us);
  }
  const std::vector<BoxingEntry> entries = log.entries();
  EXPECT_EQ(entries.size(), 103U);
  for (const BoxingEntry& entry : entries) {
    EXPECT_EQ(entry.runs, 3);
    EXPECT_EQ(entry.least_us, 1);
    EXPECT_EQ(entry.total_us, 6);
  }
}

TEST(Planner, NeutralValuesAreNotSent) {
  const Placement left("cpu", {0, 1}), right("cpu", {1, 2});

  const Route route = find_route({4, 4}, float64, {left, kS0}, {right, kP});

  ASSERT_EQ(route.steps.size(), 1U);
  EXPECT_EQ(route.steps[0].kind, RouteStepKind::kExchange);
  EXPECT_EQ(route.steps[0].bytes, 64);  // rank 1 holds the other half; rank 2 fills with zeros
}

// What the members of the step's group send to the rank.
int64_t received(const boxing::RankStep& step, int64_t rank) {
  if (step.group.size() < 2) return 0;
  const auto found = std::find(step.group.begin(), step.group.end(), rank);
  const auto me = static_cast<size_t>(found - step.group.begin());
  const auto sum_without_me = [&](const std::vector<int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), int64_t{0}) - all[me];
  };
  const auto element_bytes = static_cast<int64_t>(sizeof(float));
  switch (step.carrier) {
    case boxing::Carrier::kAllGather:
      return element_bytes * sum_without_me(step.part_counts);
    case boxing::Carrier::kReduceScatter:
      return element_bytes * step.part_counts[me] * (std::ssize(step.group) - 1);
    case boxing::Carrier::kPackedBoxes:
      return sum_without_me(step.recv_bytes);
  }
  return 0;
}

TEST(Planner, StatedBytesAreThoseThatRanksReceive) {
  constexpr int64_t kRanks = 4;
  RedistributeCaseMaker maker(11, kRanks);
  int num_steps = 0;
  for (int i = 0; i < 2000; ++i) {
    const RedistributeCase c = maker.make();
    const Route route = find_route(c.shape, float32, c.from, c.to, c.cost);
    std::vector<int64_t> most(route.steps.size());
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const boxing::RankRoute own = boxing::make_rank_route(route, rank);
      for (size_t k = 0; k < most.size(); ++k) {
        if (own.steps[k].kind != RouteStepKind::kAllReduce)
          most[k] = std::max(most[k], received(own.steps[k], rank));
      }
    }
    for (size_t k = 0; k < most.size(); ++k) {
      if (route.steps[k].kind == RouteStepKind::kAllReduce) continue;
      ++num_steps;
      EXPECT_EQ(static_cast<int64_t>(route.steps[k].bytes), most[k])
          << "case " << i << ", step " << k << " of " << to_string(route);
    }
  }
  EXPECT_GT(num_steps, 1000);
}

TEST(Planner, EqualPartsNeedNoStep) {
  const Placement alone("cpu", {2});
  EXPECT_EQ(route({4, 4}, {kGrid, {kS0, kB}}, {kGrid, {kS0, kB}}), std::vector<RouteStepKind>());
  EXPECT_EQ(route({4, 4}, {alone, kP}, {alone, kS1}), std::vector<RouteStepKind>());
  EXPECT_EQ(route({0, 4}, {kPair, kS1}, {kFour, kB}), std::vector<RouteStepKind>());
}

TEST(Planner, SameBoxesUnderAnotherArrangementOfTheRanksStayLocal) {
  EXPECT_EQ(route({8, 6}, {kFour, kS0}, {kGrid, {kS0, kS0}}),
            std::vector<RouteStepKind>{RouteStepKind::kSlice});
}

TEST(Planner, StepsAlongOneAxisStayInItsGroups) {
  const Route route = find_route({8, 6}, float32, {kGrid, {kS0, kS1}}, {kGrid, {kS0, kB}});

  ASSERT_EQ(route.steps.size(), 1U);
  EXPECT_EQ(boxing::group_of(route.steps[0], 2), (std::vector<int64_t>{2, 3}));
}

TEST(Planner, SplittingTheSameDimAgainMovesTheInnerParts) {
  // Rank (i, j) holds part j of half i; as (B, S(0)) it holds half j of the whole.
  const Route route = find_route({8}, float32, {kGrid, {kS0, kS0}}, {kGrid, {kB, kS0}});

  ASSERT_EQ(route.steps.size(), 1U);
  EXPECT_EQ(route.steps[0].kind, RouteStepKind::kExchange);
  EXPECT_EQ(boxing::group_of(route.steps[0], 0), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Planner, InnerReductionOfAnotherKindComesFirst) {
  const Route route = find_route({64}, float32, {kGrid, {kP, sbp::partial_max}}, {kGrid, {kB, kB}});

  ASSERT_EQ(route.steps.size(), 2U);
  EXPECT_EQ(route.steps[0].to.nd_sbp, (NdSbp{kP, kB}));
}

TEST(Planner, LargeSumOverBothAxesIsReducedWhereItIsSmallest) {
  // Gathering before the reduction would double what is summed.
  const Route route = find_route({1024, 1024}, float32, {kGrid, {kP, kS0}}, {kGrid, {kB, kB}});

  ASSERT_EQ(route.steps.size(), 2U);
  EXPECT_NE(route.steps[0].kind, RouteStepKind::kAllGather);
  EXPECT_EQ(route.steps[1].kind, RouteStepKind::kAllGather);
}

TEST(Planner, OneRankReachesAllOthersByBroadcast) {
  EXPECT_EQ(route({4}, {Placement("cpu", {0}), kB}, {Placement("cpu", {1, 2}), kB}),
            std::vector<RouteStepKind>{RouteStepKind::kBroadcast});
}

TEST(Planner, PlansAreEqualDataWithText) {
  const Route route = find_route({8, 6}, float32, {kPair, kS0}, {kPair, kB});

  EXPECT_EQ(route, find_route({8, 6}, float32, {kPair, kS0}, {kPair, kB}));
  EXPECT_NE(route, find_route({8, 6}, float64, {kPair, kS0}, {kPair, kB}));
  const std::string text = to_string(route);
  EXPECT_NE(text.find("float32 (8, 6) from S(0) on cpu:(0, 1) to B on cpu:(0, 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("all_gather S(0) -> B along axes 0 of cpu:(0, 1), 96 bytes"),
            std::string::npos)
      << text;
}

TEST(Planner, UnevenPartsListTheirBoxes) {
  const Route route = find_route({3, 2}, float32, {kPair, kS0}, {kPair, kS1});
  ASSERT_EQ(route.steps.size(), 1U);

  const std::vector<Region> regions = boxing::regions_of(route.shape, route.steps[0], 1);

  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].box, (Box{Shape{0, 1}, Shape{2, 1}}));
  EXPECT_EQ(regions[0].sources, std::vector<int64_t>{0});
  EXPECT_EQ(regions[1].box, (Box{Shape{2, 1}, Shape{1, 1}}));
  EXPECT_EQ(regions[1].sources, std::vector<int64_t>{1});
}

TEST(Planner, ReplicasServeTheirOwnTargets) {
  // Ranks 0 and 1 both hold all; 2 and 3 ask one each.
  const Route route = find_route({4}, float32, {kPair, kB}, {Placement("cpu", {2, 3}), kB});
  ASSERT_EQ(route.steps.size(), 1U);

  EXPECT_EQ(boxing::regions_of(route.shape, route.steps[0], 0)[0].sources, std::vector<int64_t>{0});
  EXPECT_EQ(boxing::regions_of(route.shape, route.steps[0], 1)[0].sources, std::vector<int64_t>{1});
}

TEST(Planner, TheRunnerUpIsTheNextRoute) {
  const Route route = find_route({1000, 1000}, float32, {kPair, kP}, {kPair, kB});
  EXPECT_EQ(boxing::step_names(route), "all_reduce");

  const auto other = boxing::runner_up(route);

  ASSERT_TRUE(other);
  EXPECT_EQ(boxing::step_names(*other), "reduce_scatter + all_gather");
  EXPECT_GE(other->time_us(), route.time_us());
  EXPECT_EQ(other->from, route.from);
  EXPECT_EQ(other->to, route.to);
}

TEST(Planner, WithoutStepsThereIsNoRunnerUp) {
  const Route route = find_route({4}, float32, {kPair, kB}, {kPair, kB});
  EXPECT_EQ(boxing::step_names(route), "nothing moves");
  EXPECT_FALSE(boxing::runner_up(route));
}

TEST(Planner, RanksOfNeitherPlacementHaveNoPart) {
  const Route route = find_route({4}, float32, {kPair, kS0}, {kPair, kB});

  const boxing::RankRoute outside = boxing::make_rank_route(route, 5);

  ASSERT_EQ(outside.steps.size(), 1U);
  EXPECT_TRUE(outside.steps[0].group.empty());
}

TEST(Planner, NoRouteTakesLessThanItsBound) {
  RedistributeCaseMaker maker(5, 8);
  int num_close = 0;
  for (int i = 0; i < 20000; ++i) {
    RedistributeCase c = maker.make();
    c.to.placement = c.from.placement;
    if (c.to.nd_sbp.size() != c.from.nd_sbp.size()) continue;
    const double predicted_us = find_route(c.shape, float32, c.from, c.to, c.cost).time_us();
    const double least_us = boxing::least_time_us(c.shape, float32, c.from, c.to, c.cost);

    ASSERT_LE(least_us, predicted_us * (1 + 1e-12)) << c.shape << ' ' << c.from << " to " << c.to;
    num_close += least_us > predicted_us / 2 ? 1 : 0;
  }
  EXPECT_GT(num_close, 1000);  // a bound that is always 0 would be of no use
}

}  // namespace
}  // namespace flow
