// Events of ranks: what a rank's file keeps, and how files are merged.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/context.h"
#include "core/error.h"
#include "core/timeline/merge.h"
#include "core/timeline/rank_file.h"
#include "core/timeline/timeline_log.h"
#include "tests/support/temp_folder.h"

namespace flow::timeline {
namespace {

using Json = nlohmann::json;

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Timeline : public testing::Test {
 protected:
  TimelineLog open(int64_t rank, int64_t world_size) const {
    return {folder_, {.rank = rank, .world_size = world_size}, kRoom};
  }

  static constexpr Room kRoom = {.events = 1000, .text_bytes = 4096};

  // The bytes of a rank's file, changed and written back.
  template <class Change>
  void change_head(int64_t rank, const Change& change) const {
    std::fstream file(rank_file(folder_, rank), std::ios::in | std::ios::out | std::ios::binary);
    FileHead head;
    file.read(reinterpret_cast<char*>(&head), sizeof(head));
    change(head);
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(&head), sizeof(head));
  }

  MergeResult merge() const { return merge_timelines(folder_, merged_file(folder_)); }

  // The merged events of a category.
  std::vector<Json> events(const std::string& category) const {
    std::vector<Json> found;
    const Json timeline = Json::parse(read(merged_file(folder_)));
    for (const Json& event : timeline["traceEvents"]) {
      if (event.value("cat", "") == category) found.push_back(event);
    }
    return found;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.file("timeline");
};

TEST_F(Timeline, EventsKeepNamesTimesAndNesting) {
  {
    TimelineLog log = open(0, 1);
    const ThreadLane lane(log, log.lane_named("program"));
    const Event outer{.bytes = 12,
                      .name = log.static_text("outer"),
                      .file = log.text("/somewhere/train.cpp"),
                      .module = log.text("model.fc1"),
                      .line = 7};
    const uint64_t first = log.begin(outer);
    log.end(
        log.begin(
            {.name = log.text("inner"), .peer = 3, .number_in = 5, .kind = EventKind::kMessage}),
        false);
    log.end(first, true);
  }

  const MergeResult result = merge();

  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.num_ranks, 1);
  EXPECT_EQ(result.num_events, 2U);
  const Json outer = events("op").at(0), inner = events("message").at(0);
  EXPECT_EQ(outer["name"], "outer");
  EXPECT_EQ(
      outer["args"],
      (Json{{"site", "train.cpp:7"}, {"module", "model.fc1"}, {"bytes", 12}, {"failed", true}}));
  EXPECT_EQ(inner["args"], (Json{{"peer", 3}, {"tag", 5}}));
  EXPECT_EQ(outer["ts"], 0);
  EXPECT_LE(outer["ts"].get<double>(), inner["ts"].get<double>());
  EXPECT_GE(outer["ts"].get<double>() + outer["dur"].get<double>() + 1e-9,
            inner["ts"].get<double>() + inner["dur"].get<double>());
}

TEST_F(Timeline, ARankKeepsItsLastEventsAndCountsTheOthers) {
  constexpr uint64_t kFurther = 100;
  {
    TimelineLog log = open(0, 1);
    const uint64_t lost = log.begin({.name = log.text("lost")});
    for (uint64_t i = 1; i < kRoom.events + kFurther; ++i)
      log.end(log.begin({.name = log.text("kept")}), false);
    log.end(lost, false);  // its place belongs to another event now
  }

  const MergeResult result = merge();

  EXPECT_EQ(result.num_events, kRoom.events);
  EXPECT_EQ(result.num_lost, kFurther);
  EXPECT_NE(describe(result, "x").find("the first 100 events are lost"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(rank_file(folder_, 0)), file_bytes(kRoom));
  for (const Json& event : events("op"))
    EXPECT_EQ(event["name"], "kept");
}

TEST_F(Timeline, WhatADeadRankHadNotEndedIsMarked) {
  {
    TimelineLog log = open(0, 1);
    log.begin({.name = log.text("all_reduce"), .kind = EventKind::kCollective});
    log.end(log.begin({.name = log.text("add")}), false);
  }

  merge();

  EXPECT_EQ(events("collective").at(0)["args"]["unfinished"], true);
  EXPECT_FALSE(events("op").at(0)["args"].contains("unfinished"));
  const Json about = Json::parse(read(merged_file(folder_)))["flow"]["recorded"][0];
  EXPECT_EQ(about["has_ended"], false);
}

TEST_F(Timeline, AThreadThatHasEndedLeavesItsLaneToTheNext) {
  {
    TimelineLog log = open(0, 1);
    const ThreadLane lane(log, log.lane_named("program"));
    for (const char* name : {"there", "there again"}) {
      std::thread([&] {
        const ThreadLane inner(log, log.take_lane());
        log.end(log.begin({.name = log.text(name)}), false);
      }).join();
    }
    log.end(log.begin({.name = log.text("here")}), false);
  }

  merge();

  std::map<std::string, int> lane_of;
  for (const Json& event : events("op"))
    lane_of[event["name"]] = event["tid"];
  EXPECT_EQ(lane_of, (std::map<std::string, int>{{"here", 0}, {"there", 1}, {"there again", 1}}));
  EXPECT_NE(read(merged_file(folder_)).find("\"thread 1\""), std::string::npos);
}

TEST_F(Timeline, ClocksOfHostsAreAlignedByTheTimeOfDay) {
  for (const int64_t rank : {0, 1}) {
    TimelineLog log = open(rank, 2);
    log.end(log.begin({.name = log.text("add")}), false);
  }
  for (const int64_t rank : {0, 1}) {
    change_head(rank, [](FileHead& head) { head.realtime_ns = head.monotonic_ns + 1'000'000'000; });
  }
  merge();
  const auto apart = [&] {
    return events("op").at(1)["ts"].get<double>() - events("op").at(0)["ts"].get<double>();
  };
  const double before = apart();
  EXPECT_TRUE(merge().remarks.empty());
  // The other host has booted 5 s later, so its clock is 5 s behind at the same time of day.
  change_head(1, [](FileHead& head) {
    head.boot[0] = head.boot[0] == 'x' ? 'y' : 'x';
    head.monotonic_ns -= 5'000'000'000;
  });

  const MergeResult result = merge();

  EXPECT_NEAR(apart() - before, 5e6, 1);
  ASSERT_EQ(result.remarks.size(), 1U);
  EXPECT_NE(result.remarks[0].find("time of day"), std::string::npos);
}

TEST_F(Timeline, DamagedAndMissingFilesAreNamed) {
  { const TimelineLog log = open(0, 3); }
  std::ofstream(rank_file(folder_, 1)) << "no events";

  const MergeResult result = merge();

  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.num_ranks, 1);
  const std::string text = describe(result, "x");
  EXPECT_NE(text.find("rank_1.events is left out: it is too short"), std::string::npos) << text;
  EXPECT_NE(text.find("no events of rank 1 2"), std::string::npos) << text;
  EXPECT_NE(merge_timelines(folder_ + "_none", folder_ + ".json").error, "");
}

TEST_F(Timeline, TextsBeyondTheRoomAreLostAndCounted) {
  {
    TimelineLog log = open(0, 1);
    EXPECT_EQ(log.text(std::string(kRoom.text_bytes, 'x')), 0U);
    EXPECT_NE(log.text("short"), 0U);
  }
  merge();
  EXPECT_EQ(Json::parse(read(merged_file(folder_)))["flow"]["recorded"][0]["lost_names"], 1);
}

TEST_F(Timeline, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_) << "a file";
  EXPECT_THROW(open(0, 1), IoError);
}

}  // namespace
}  // namespace flow::timeline
