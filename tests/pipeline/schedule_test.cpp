#include "pipeline/schedule.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.h"
#include "pipeline/generators.h"

namespace flow::pipeline {
namespace {

TEST(Schedule, GpipeDoesAllForwardsFirst) {
  EXPECT_EQ(to_string(gpipe(2, 2)), "0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n");
}

TEST(Schedule, TextParsesBack) {
  const Schedule schedule = gpipe(3, 4);
  EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
}

TEST(Schedule, OneForwardOneBackwardIsAccepted) {
  EXPECT_NO_THROW(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
  EXPECT_EQ(parse_schedule(" \n0F0 0B0\n\n"), parse_schedule("0F0 0B0\n")) << "blank lines";
}

TEST(Schedule, WeightsMayComeLater) {
  EXPECT_NO_THROW(parse_schedule("0F0 0B0 0W0\n1F0 1B0 1W0\n"));
  EXPECT_TRUE(parse_schedule("0F0 0B0 0W0\n").has_weights());
  EXPECT_THROW(parse_schedule("0F0 0W0 0B0\n"), InvalidArgument);
}

TEST(Schedule, OneForwardOneBackwardTakesTurns) {
  EXPECT_EQ(to_string(make_schedule(one_f_one_b(), 3, 4)),
            "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
            "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
}

TEST(Schedule, InterleavedGivesAWorkerSeveralStages) {
  const Schedule schedule = make_schedule(interleaved(2), 4, 2);
  EXPECT_EQ(to_string(schedule),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
  EXPECT_THROW(make_schedule(interleaved(2), 4, 3), InvalidArgument);
  EXPECT_THROW(make_schedule(interleaved(3), 4, 4), InvalidArgument);
}

// A worker runs twice as many forwards ahead as there are workers behind it, so that messages of
// one micro-batch overlap the computation of another (Narayanan et al. 2021, "Efficient large-scale
// language model training on GPU clusters using Megatron-LM", section 2.2).
TEST(Schedule, InterleavedWarmsUpForTheMessages) {
  const int64_t workers = 4, chunks = 2;
  const Schedule schedule = make_schedule(interleaved(chunks), workers * chunks, 8);
  for (int64_t w = 0; w < workers; ++w) {
    const auto& actions = schedule.actions[static_cast<size_t>(w)];
    const auto first = std::find_if(actions.begin(), actions.end(), [](const Action& action) {
      return action.kind == ActionKind::kBackward;
    });
    EXPECT_EQ(first - actions.begin(), 2 * (workers - 1 - w) + (chunks - 1) * workers + 1) << w;
  }
}

TEST(Schedule, EveryRuleGivesAValidSchedule) {
  for (const ScheduleRule& rule : {gpipe(), one_f_one_b(), interleaved(2), zb_h1(), zb_v()}) {
    for (const int64_t stages : {2, 4, 8}) {
      for (const int64_t micro_batches : {4, 8, 16}) {
        EXPECT_NO_THROW(validate(make_schedule(rule, stages, micro_batches))) << to_string(rule);
      }
    }
  }
  EXPECT_NO_THROW(validate(make_schedule(zb_h1(), 3, 1)));
  EXPECT_NO_THROW(validate(make_schedule(one_f_one_b(), 1, 5)));
}

TEST(Schedule, RulesHaveNames) {
  for (const ScheduleRule& rule : {gpipe(), one_f_one_b(), interleaved(3), zb_h1(), zb_v()})
    EXPECT_EQ(parse_schedule_rule(to_string(rule)), rule);
  EXPECT_THROW(parse_schedule_rule("interleaved:x"), InvalidArgument);
  EXPECT_THROW(parse_schedule_rule("pipe"), InvalidArgument);
}

TEST(Schedule, NumbersThatCannotBeMeantAreRefusedAtOnce) {
  constexpr int64_t kHuge = 999'999'999, kLargest = std::numeric_limits<int64_t>::max();
  for (const ScheduleRule& rule : {gpipe(), one_f_one_b(), interleaved(2), zb_h1(), zb_v()}) {
    for (const auto& [stages, micro_batches] :
         {std::pair<int64_t, int64_t>{4, kHuge}, {kHuge, 4}, {kLargest, kLargest}, {0, 4}, {4, 0}})
      EXPECT_THROW(make_schedule(rule, stages, micro_batches), InvalidArgument) << to_string(rule);
  }
  EXPECT_THROW(parse_schedule_rule("interleaved:99999999999"), InvalidArgument);
}

TEST(Schedule, ATableIsForItsNumbers) {
  const std::string text = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n";
  EXPECT_EQ(to_string(make_schedule(schedule_table(text), 2, 2)), text);
  EXPECT_THROW(make_schedule(schedule_table(text), 2, 3), InvalidArgument);
  EXPECT_THROW(schedule_table("0F0\n"), InvalidArgument);
}

std::string complaint(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, DeadlockNamesTheActionsThatWait) {
  // Stage 1 wants micro-batch 1 first, stage 0 sends it only after the backward of 0.
  const std::string message = complaint("0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1\n");
  EXPECT_NE(message.find("wait for each other for ever: 0B0, 1F1"), std::string::npos) << message;
}

TEST(Schedule, IncompleteAndDoubledActionsAreRefused) {
  EXPECT_NE(complaint("0F0 0B0\n1F0\n").find("3 of 4 actions"), std::string::npos);
  EXPECT_NE(complaint("0F0 0F0 0B0\n").find("0F0 is listed twice"), std::string::npos);
  EXPECT_NE(complaint("1F0 1B0\n").find("2 of 4 actions"), std::string::npos);
  EXPECT_NE(complaint("0F0 1F0 1B0\n0B0\n").find("0B0 is listed in line 2"), std::string::npos);
  EXPECT_NE(complaint("0F0 0B0 0W0\n1F0 1B0\n").find("5 of 6 actions"), std::string::npos);
  EXPECT_NE(complaint("0F0 0X0\n").find("cannot read the action '0X0'"), std::string::npos);
}

}  // namespace
}  // namespace flow::pipeline
