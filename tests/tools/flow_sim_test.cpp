// flow-sim's commands.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"
#include "pipeline/generators.h"
#include "tests/support/temp_folder.h"
#include "tools/flow_sim/commands.h"
#include "tools/flow_sim/timeline_sums.h"

namespace flow::sim {
namespace {

using pipeline::ActionKind;
using pipeline::TimelineFile;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Stages of F = 10, B = 10, W = 10.
RunOptions even(int64_t stages, int64_t micro_batches) {
  RunOptions options;
  options.stages = stages;
  options.micro_batches = micro_batches;
  options.forward = options.backward = options.weight = {10};
  return options;
}

// Message of the InvalidArgument that `options` raise.
std::string refusal(const RunOptions& options) {
  try {
    run(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "none";
}

TEST(FlowSim, SchedulesAreARowEach) {
  RunOptions options = even(4, 8);
  options.activation_bytes = {1000};
  const std::string table = run(options);
  EXPECT_TRUE(has(table, "4 stages, 8 micro-batches\n"));
  // 3 (m + p - 1) actions of 10 us; then 3 m + p - 1.
  EXPECT_TRUE(has(table,
                  "gpipe                      4         330.0   0.2727    1.000          8000"
                  "  8 8 8 8\n"))
      << table;
  EXPECT_TRUE(has(table,
                  "1f1b                       4         330.0   0.2727    1.000          4000"
                  "  4 3 2 1\n"))
      << table;
  EXPECT_TRUE(has(table,
                  "zb-h1                      4         270.0   0.1111    1.222          4000"
                  "  4 4 4 4\n"))
      << table;
  EXPECT_TRUE(has(table, "interleaved:2              2 ")) << table;
}

TEST(FlowSim, TransfersLengthenTheStep) {
  RunOptions options = even(2, 1);
  options.schedules = {"1f1b"};
  options.transfer = {5};
  options.transfer_back = {7};
  EXPECT_TRUE(has(run(options), " 72.0 "));
}

TEST(FlowSim, TimelinesFeedTheNextSimulation) {
  const TempFolder folder;
  RunOptions options = even(2, 4);
  options.schedules = {"1f1b"};
  options.forward = {10, 30};
  options.out = folder.file("costs.json");
  run(options);
  RunOptions next;
  next.costs = options.out;
  next.schedules = {"1f1b"};
  next.micro_batches = 8;
  RunOptions same = options;
  same.micro_batches = 8;
  same.out = "";
  EXPECT_EQ(run(next), run(same));
}

TEST(FlowSim, TablesAreSchedules) {
  const TempFolder folder;
  const std::string path = folder.file("table.txt");
  std::ofstream(path) << "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n";
  RunOptions options;
  options.schedules = {path};
  EXPECT_TRUE(has(run(options), "2 stages, 2 micro-batches\n"));
}

TEST(FlowSim, OptionsThatDoNotFitAreRefused) {
  EXPECT_TRUE(has(refusal({}), "0 stages and 0 micro-batches"));
  RunOptions options = even(3, 4);
  options.forward = {1, 2};
  EXPECT_TRUE(has(refusal(options), "--forward has 2 numbers; give 3"));
  options = even(3, 4);
  options.backward = {-1};
  EXPECT_TRUE(has(refusal(options), "--backward has -1"));
  options = even(3, 4);
  options.schedules = {"zigzag"};
  EXPECT_TRUE(has(refusal(options), "'zigzag' is unknown"));
  options = even(3, 4);
  options.out = "x.json";
  EXPECT_TRUE(has(refusal(options), "--out with 3 schedules"));
  EXPECT_TRUE(has(refusal(even(1 << 20, 1 << 20)), "at most"));
}

// Rank 1 begins 2 us late and waits 3 us in 1B0; it works 8 of 16 us.
TimelineFile measured() {
  TimelineFile file = pipeline::simulated_timeline(pipeline::parse_schedule("0F0 0B0\n1F0 1B0\n"),
                                                   "table", {{1, 1, 1}, {2, 3, 1}});
  file.is_measured = true;
  const auto set = [&](int64_t stage, ActionKind kind, double start, double duration) {
    for (pipeline::TimelineEvent& event : file.events) {
      if (!(event.action == pipeline::Action{stage, kind, 0})) continue;
      event.start_us = start;
      event.duration_us = duration;
    }
  };
  set(0, ActionKind::kForward, 0, 4);
  set(1, ActionKind::kForward, 6, 2);
  set(1, ActionKind::kBackward, 8, 6);
  set(0, ActionKind::kBackward, 15, 1);
  for (pipeline::TimelineEvent& event : file.events) {
    if (event.action == pipeline::Action{1, ActionKind::kBackward, 0}) event.waiting_us = 3;
  }
  return file;
}

TEST(FlowSim, SharesOfARankAddUp) {
  const TimelineSums sums = sum_up(measured());
  EXPECT_EQ(sums.span_us, 16);
  const RankShares first = sums.ranks.at(0), last = sums.ranks.at(1);
  EXPECT_DOUBLE_EQ(first.busy, 5.0 / 16);
  EXPECT_DOUBLE_EQ(first.start, 0);
  EXPECT_DOUBLE_EQ(first.between, 11.0 / 16);
  EXPECT_DOUBLE_EQ(first.end, 0);
  EXPECT_DOUBLE_EQ(last.busy, 5.0 / 16);
  EXPECT_DOUBLE_EQ(last.start, 6.0 / 16);
  EXPECT_DOUBLE_EQ(last.between, 3.0 / 16);
  EXPECT_DOUBLE_EQ(last.end, 2.0 / 16);
  EXPECT_DOUBLE_EQ(sums.bubble, 11.0 / 16);
  EXPECT_EQ((sums.wait_before_us.at({0, ActionKind::kBackward, 0})), 11);
  EXPECT_EQ(sums.stages[1].backward, 3);
}

// As predicted: 3 to 1.
TEST(FlowSim, BackwardsMeasuredWholeAreTakenApart) {
  const auto costs = costs_of(measured());
  EXPECT_DOUBLE_EQ(costs[1].backward, 2.25);
  EXPECT_DOUBLE_EQ(costs[1].weight, 0.75);
  EXPECT_DOUBLE_EQ(costs[0].backward, 0.5);
}

TEST(FlowSim, ComparisonShowsWhereTheyDiffer) {
  const TempFolder folder;
  const std::string a = folder.file("a.json"), b = folder.file("b.json");
  TimelineFile file = measured();
  pipeline::write_timeline(b, file);
  file = pipeline::simulated_timeline(file.schedule, "table", file.costs);
  pipeline::write_timeline(a, file);
  const std::string text = compare(a, b);
  EXPECT_TRUE(has(text, "span us              9.0 /        16.0\n")) << text;
  EXPECT_TRUE(has(text, "bubble            0.5000 /      0.6875\n")) << text;
  EXPECT_TRUE(has(text, "1F               2.0 /         2.0   x 1.000\n")) << text;
  EXPECT_TRUE(has(text, "1F0             0.1111 /      0.3750\n")) << text;
  EXPECT_TRUE(has(show(b), "measured, schedule table, 2 stages, 1 micro-batches\n"));

  file =
      pipeline::simulated_timeline(pipeline::make_schedule(pipeline::gpipe(), 2, 2), "gpipe", {});
  pipeline::write_timeline(a, file);
  EXPECT_THROW(compare(a, b), InvalidArgument);
  std::ofstream(a) << "{}";
  EXPECT_THROW(compare(a, b), BadFile);
  EXPECT_THROW(show(folder.file("none.json")), IoError);
}

// Rank 1 is slower than rank 0 in the second file only.
TEST(FlowSim, RanksOfAStageAreComparedWithThemselves) {
  const TempFolder folder;
  const std::string a = folder.file("a.json"), b = folder.file("b.json");
  TimelineFile file = pipeline::simulated_timeline(pipeline::parse_schedule("0F0 0B0\n"), "table",
                                                   {{2, 2, 0}}, {}, {{0, 1}});
  const auto set = [&](int64_t rank, double duration) {
    for (pipeline::TimelineEvent& event : file.events) {
      if (event.rank == rank && event.action.kind == ActionKind::kBackward)
        event.duration_us = duration;
    }
  };
  set(0, 6);
  pipeline::write_timeline(a, file);
  set(0, 2);
  set(1, 6);
  pipeline::write_timeline(b, file);
  const std::string text = compare(a, b);
  EXPECT_TRUE(has(text, "0    0           0.0000 /  0.5000")) << text;
  EXPECT_TRUE(has(text, "1    0           0.5000 /  0.0000")) << text;
}

TEST(FlowSim, ARankWhoseStagesNoOtherRankHasStandsAlone) {
  const TempFolder folder;
  const std::string a = folder.file("a.json"), b = folder.file("b.json");
  TimelineFile file = measured();
  pipeline::write_timeline(a, pipeline::simulated_timeline(file.schedule, "table", file.costs));
  file.ranks = {{0}, {0}};
  for (pipeline::TimelineEvent& event : file.events)
    event.rank = 0;
  pipeline::write_timeline(b, file);
  const std::string text = compare(a, b);
  EXPECT_TRUE(has(text, "0    0,1              - /  0.3750")) << text;
}

}  // namespace
}  // namespace flow::sim
