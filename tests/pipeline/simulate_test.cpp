#include "pipeline/simulate.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "pipeline/generators.h"

namespace flow::pipeline {
namespace {

Timeline timeline_of(const ScheduleRule& rule, int64_t stages, int64_t micro_batches) {
  return simulate(make_schedule(rule, stages, micro_batches));
}

int64_t most(const Timeline& timeline) {
  return *std::max_element(timeline.in_flight.begin(), timeline.in_flight.end());
}

// With F = 1, B = 1, W = 1 and p stages: each worker waits p - 1 forwards and backwards.
TEST(Simulate, GpipeAndOneForwardOneBackwardWaitAlike) {
  for (const auto& [p, m] : {std::pair{2, 4}, {4, 8}, {4, 4}, {8, 32}}) {
    EXPECT_EQ(timeline_of(gpipe(), p, m).makespan, 3 * (m + p - 1)) << p << " " << m;
    EXPECT_EQ(timeline_of(one_f_one_b(), p, m).makespan, 3 * (m + p - 1)) << p << " " << m;
  }
  EXPECT_DOUBLE_EQ(timeline_of(gpipe(), 4, 8).bubble(), 3.0 / 11);
}

TEST(Simulate, OneForwardOneBackwardKeepsAsManyAsStages) {
  EXPECT_EQ(timeline_of(gpipe(), 4, 8).in_flight, (std::vector<int64_t>{8, 8, 8, 8}));
  EXPECT_EQ(timeline_of(one_f_one_b(), 4, 8).in_flight, (std::vector<int64_t>{4, 3, 2, 1}));
}

// Two stages a worker halve what is waited for.
TEST(Simulate, InterleavingShortensTheWait) {
  EXPECT_EQ(timeline_of(interleaved(2), 8, 8).makespan, 3 * (2 * 8 + 4 - 1));
}

// Only p - 1 actions are waited for, as W fills the rest (Qi et al. 2023, table 2).
TEST(Simulate, ZeroBubbleH1WaitsAThirdWithTheSameMemory) {
  for (const auto& [p, m] : {std::pair{2, 4}, {4, 8}, {4, 16}, {8, 32}}) {
    const Timeline timeline = timeline_of(zb_h1(), p, m);
    EXPECT_EQ(timeline.makespan, 3 * m + p - 1) << p << " " << m;
    EXPECT_LE(most(timeline), p) << p << " " << m;
  }
}

TEST(Simulate, ZeroBubbleVKeepsAsMuchAsOneForwardOneBackward) {
  for (const auto& [p, m] : {std::pair{2, 8}, {4, 16}}) {
    const Timeline timeline = timeline_of(zb_v(), 2 * p, m);
    EXPECT_LE(most(timeline), 2 * p) << "halves of a micro-batch";
    EXPECT_LT(timeline.bubble(), timeline_of(one_f_one_b(), p, m).bubble()) << p << " " << m;
  }
}

TEST(Simulate, StagesCostWhatTheyCost) {
  const Timeline timeline = simulate(
      parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"),
      {{.forward = 1, .backward = 2, .weight = 0}, {.forward = 3, .backward = 4, .weight = 0}});
  EXPECT_EQ(timeline.makespan, 17);
  EXPECT_EQ(timeline.busy, (std::vector<double>{6, 14}));
  EXPECT_EQ(timeline.actions[1].action, (Action{0, ActionKind::kForward, 1}));
  EXPECT_EQ(timeline.actions.back().begin, 15);
}

}  // namespace
}  // namespace flow::pipeline
