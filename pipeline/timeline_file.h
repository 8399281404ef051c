// Timelines of pipelined steps, simulated or measured, in one file format: the JSON of Chrome's
// trace viewer, which Perfetto opens, with what flow knows beside it (docs/timelines.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schedule.h"
#include "pipeline/simulate.h"

namespace flow::pipeline {

// What a rank did, or would do, from when to when. Microseconds since the timeline's start.
struct TimelineEvent {
  enum class Kind : uint8_t {
    kAction,  // a stage's F, B or W of a micro-batch: from the arrival of what it needs to its end
    kPhase,   // what runs before or after all actions
    kWait,    // for a message that is to come, or for one's own to be taken
    kTransfer,  // a message, on its sender: from the send until it was received
    kKernel     // a kernel or copy in an action or phase
  };

  Kind kind = Kind::kAction;
  std::string name = {};  // of kPhase and kKernel
  int64_t rank = 0;
  int64_t run = 0;
  double start_us = 0;
  double duration_us = 0;
  // kAction. Predictions are from the run's first action on; negative: none.
  Action action = {};
  double predicted_start_us = -1;
  double predicted_us = -1;
  double waiting_us = 0;     // inside, for messages
  double collective_us = 0;  // inside, in redistributions among the stage's ranks
  // kWait, kTransfer: the other rank, the message's number and size.
  int64_t peer = -1;
  int64_t tag = 0;
  int64_t bytes = 0;
  bool is_send = false;  // kWait: for one's own message to be taken

  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

struct TimelineFile {
  bool is_measured = false;
  std::string schedule_name = {};
  Schedule schedule = {};                        // of no workers for a step that is no pipeline
  std::vector<std::vector<int64_t>> ranks = {};  // by stage
  std::vector<StageCost> costs = {};             // that were predicted with, by stage
  std::vector<TimelineEvent> events = {};        // by start
};

std::string to_json(const TimelineFile& file);
// Inverse of to_json. Throws BadFile, naming `path` and what is wrong, for text that is not of this
// format or not in itself consistent.
TimelineFile parse_timeline(std::string_view text, const std::string& path);

// Throws IoError.
void write_timeline(const std::string& path, const TimelineFile& timeline);

// The events alone, for ranks to send.
std::string events_to_json(const std::vector<TimelineEvent>& events);
std::vector<TimelineEvent> parse_events(std::string_view text, const std::string& path);

// What simulate() predicts, one rank a worker unless `ranks`, by stage, says more.
TimelineFile simulated_timeline(const Schedule& schedule, const std::string& name,
                                const std::vector<StageCost>& costs,
                                const std::vector<TransferCost>& transfers = {},
                                std::vector<std::vector<int64_t>> ranks = {});

}  // namespace flow::pipeline
