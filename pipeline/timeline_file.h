// Timelines of pipelined steps, simulated or measured, in one file format: the JSON of Chrome's
// trace viewer, which Perfetto opens, with additional fields of flow (docs/timelines.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schedule.h"
#include "pipeline/simulate.h"

namespace flow::pipeline {

// What a rank did, or is predicted to do, and when. Times are microseconds from the timeline's
// start.
struct TimelineEvent {
  enum class Kind : uint8_t {
    kAction,    // a stage's F, B or W of a micro-batch: from the arrival of its inputs to its end
    kPhase,     // what runs before or after all actions
    kWait,      // for a message to arrive, or for a sent message to be received
    kTransfer,  // a message, on its sender: from the send until it is received
    kKernel     // a kernel or copy in an action or phase
  };

  Kind kind = Kind::kAction;
  std::string name = {};  // of kPhase and kKernel
  int64_t rank = 0;
  int64_t run = 0;
  double start_us = 0;
  double duration_us = 0;
  // kAction. Predicted times count from the run's first action; negative: no prediction.
  Action action = {};
  double predicted_start_us = -1;
  double predicted_us = -1;
  double waiting_us = 0;     // inside, for messages
  double collective_us = 0;  // inside, in redistributions among the stage's ranks
  // kWait, kTransfer: the other rank, the message's number and size.
  int64_t peer = -1;
  int64_t tag = 0;
  int64_t bytes = 0;
  bool is_send = false;  // kWait: for a sent message to be received

  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

struct TimelineFile {
  bool is_measured = false;
  std::string schedule_name = {};
  Schedule schedule = {};                        // has no workers if the step is no pipeline
  std::vector<std::vector<int64_t>> ranks = {};  // by stage
  std::vector<StageCost> costs = {};             // by stage, for the predictions
  std::vector<TimelineEvent> events = {};        // by start
};

std::string to_json(const TimelineFile& file);
// Inverse of to_json. Throws BadFile, naming `path` and what is wrong, for text that has another
// format or contradicts itself.
TimelineFile parse_timeline(std::string_view text, const std::string& path);

// Throws IoError.
void write_timeline(const std::string& path, const TimelineFile& timeline);

// The events alone, for ranks to send.
std::string events_to_json(const std::vector<TimelineEvent>& events);
std::vector<TimelineEvent> parse_events(std::string_view text, const std::string& path);

// The prediction of simulate(). Each worker is one rank unless `ranks`, by stage, has more.
TimelineFile simulated_timeline(const Schedule& schedule, const std::string& name,
                                const std::vector<StageCost>& costs,
                                const std::vector<TransferCost>& transfers = {},
                                std::vector<std::vector<int64_t>> ranks = {});

}  // namespace flow::pipeline
