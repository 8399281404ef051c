// Timelines as files.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "pipeline/generators.h"
#include "pipeline/timeline_file.h"

namespace flow::pipeline {
namespace {

using Kind = TimelineEvent::Kind;

// F of stage 1 takes four times that of stage 0.
TimelineFile two_stages() {
  return simulated_timeline(make_schedule(one_f_one_b(), 2, 2), "1f1b", {{1, 2, 3}, {4, 5, 6}},
                            {{0.5, 0.25}});
}

const TimelineEvent& event_of(const TimelineFile& file, const Action& action) {
  for (const TimelineEvent& event : file.events) {
    if (event.kind == Kind::kAction && event.action == action) return event;
  }
  throw InvalidArgument("no such action");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Timeline, SimulatedActionsWaitForTransfers) {
  const TimelineFile file = two_stages();
  EXPECT_EQ(file.events.size(), 8U);
  EXPECT_EQ(event_of(file, {0, ActionKind::kForward, 1}).start_us, 1);
  EXPECT_EQ(event_of(file, {1, ActionKind::kForward, 0}).start_us, 1.5);
  EXPECT_EQ(event_of(file, {1, ActionKind::kBackward, 0}).start_us, 5.5);
  EXPECT_EQ(event_of(file, {1, ActionKind::kBackward, 0}).duration_us, 11);
  EXPECT_EQ(event_of(file, {0, ActionKind::kBackward, 0}).start_us, 16.75);
  EXPECT_EQ(event_of(file, {0, ActionKind::kBackward, 0}).rank, 0);
  EXPECT_EQ(event_of(file, {1, ActionKind::kForward, 0}).rank, 1);
}

// Nothing goes between two stages of one worker.
TEST(Timeline, StagesOfOneWorkerDoNotTransfer) {
  const TimelineFile file =
      simulated_timeline(parse_schedule("0F0 1F0 1B0 0B0\n"), "table", {}, {{100, 100}});
  EXPECT_EQ(event_of(file, {0, ActionKind::kBackward, 0}).start_us, 4);
}

TEST(Timeline, ReadsBackAsItWas) {
  TimelineFile file = two_stages();
  file.is_measured = true;
  file.events.push_back({.kind = Kind::kPhase, .name = "after", .rank = 1, .start_us = 40.25});
  file.events.push_back({.kind = Kind::kKernel, .name = "matmul", .run = 2, .duration_us = 0.125});
  file.events.push_back({.kind = Kind::kWait,
                         .rank = 1,
                         .start_us = 3,
                         .duration_us = 1,
                         .peer = 0,
                         .tag = 7,
                         .bytes = 4096,
                         .is_send = true});
  file.events.push_back({.kind = Kind::kTransfer, .start_us = 1, .peer = 1, .tag = 3, .bytes = 8});
  file.events[0].waiting_us = 0.5;
  file.events[1].collective_us = 0.75;
  const TimelineFile read = parse_timeline(to_json(file), "t.json");
  EXPECT_TRUE(read.is_measured);
  EXPECT_EQ(read.schedule_name, "1f1b");
  EXPECT_EQ(read.schedule, file.schedule);
  EXPECT_EQ(read.ranks, (std::vector<std::vector<int64_t>>{{0}, {1}}));
  EXPECT_EQ(read.costs[1].backward, 5);
  EXPECT_EQ(read.events, file.events);
}

// What the viewer needs, by the trace event format.
TEST(Timeline, IsATraceOfTheViewer) {
  const std::string text = to_json(two_stages());
  EXPECT_NE(text.find("\"traceEvents\": ["), text.npos);
  EXPECT_NE(text.find(R"({"name":"0F0","cat":"action","ph":"X","pid":0,"tid":0,"ts":0.0,"dur":1.0,)"
                      R"("args":{"run":0,"stage":0,"kind":"F","micro_batch":0,)"
                      R"("predicted_start_us":0.0,"predicted_us":1.0}})"),
            text.npos)
      << text;
}

TEST(Timeline, EventsOfOtherProgramsArePassedOver) {
  const std::string text =
      replaced(to_json(two_stages()), "\"traceEvents\": [",
               R"("traceEvents": [{"ph": "C", "name": "memory"}, {"cat": "gpu", "ts": "x"},)");
  EXPECT_EQ(parse_timeline(text, "t.json").events, two_stages().events);
}

TEST(Timeline, WhatIsNotOfTheFormatIsRefusedWithTheReason) {
  const std::string good = to_json(two_stages());
  const auto reason = [](const std::string& text) -> std::string {
    try {
      parse_timeline(text, "dir/t.json");
    } catch (const BadFile& error) {
      EXPECT_NE(std::string(error.what()).find("dir/t.json"), std::string::npos);
      return error.what();
    }
    return "none";
  };
  const auto expect = [&](const std::string& text, const char* why) {
    EXPECT_NE(reason(text).find(why), std::string::npos) << reason(text);
  };
  expect("", "it is no JSON");
  expect("[]", "it is no object");
  expect(R"({"traceEvents": []})", "the file has no flow");
  expect(replaced(good, "flow-timeline", "other"), "its format is another");
  expect(replaced(good, "\"version\":1", "\"version\":2"), "version 2");
  expect(replaced(good, "simulated", "dreamt"), "'dreamt'");
  expect(replaced(good, "1B1\"", "1B2\""), "actions");
  expect(replaced(good, "0B1\"", "0B1 90000000000F0\""), "90000000000F0");
  expect(replaced(good, "[[0],[1]]", "[[0]]"), "ranks of 1 stages of 2");
  expect(replaced(good, "[[0],[1]]", "[[0],[2]]"), "does not hold its stage");
  expect(replaced(good, "\"forward_us\":1.0", "\"forward_us\":-1"), "is no time");
  expect(replaced(good, "\"dur\":1.0", "\"dur\":\"long\""), "dur of event");
  expect(replaced(good, "\"kind\":\"F\"", "\"kind\":\"G\""), "not F, B or W");
  expect(replaced(good, "\"micro_batch\":1", "\"micro_batch\":0"), "there twice");
  expect(replaced(good, "\"micro_batch\":1", "\"micro_batch\":5"), "is not in the schedule");
  expect(replaced(good, "\"cat\":\"action\"", "\"cat\":\"other\""), "7 actions are there, of 8");
}

// Cut short anywhere, it is refused and nothing else happens.
TEST(Timeline, FilesCutShortAreRefused) {
  const std::string good = to_json(two_stages());
  for (size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_THROW(parse_timeline(good.substr(0, size), "t.json"), BadFile) << size;
}

}  // namespace
}  // namespace flow::pipeline
