// Sums over a timeline: how long each rank worked and waited.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pipeline/timeline_file.h"

namespace flow::sim {

// Shares of the span of a run, which lasts from the start of its first action to the end of its
// last. They add up to 1.
struct RankShares {
  double busy = 0;
  double start = 0;    // idle before the rank's first action
  double between = 0;  // idle between actions, and waiting for messages in them
  double end = 0;      // idle after its last action
};

// Means over the runs.
struct TimelineSums {
  double span_us = 0;
  double bubble = 0;  // the share of all ranks' time in which they wait
  std::map<int64_t, RankShares> ranks;
  // By stage, averaged over its ranks and micro-batches. Without W, B includes W.
  std::vector<pipeline::StageCost> stages;
  // By action, averaged over ranks: how long the rank waited before the action and in it.
  std::map<pipeline::Action, double> wait_before_us;
  std::vector<int64_t> kept_by_stage;  // the largest number of micro-batches in any run
  int64_t num_messages = 0;            // in one run
  int64_t message_bytes = 0;           // in one run
  double message_us = 0;               // of one message
};

// Throws InvalidArgument if there are no actions.
TimelineSums sum_up(const pipeline::TimelineFile& file);

// The times of the stages of a timeline, measured or as given to the simulation. If B and W were
// measured together, they are separated in the predicted proportion.
std::vector<pipeline::StageCost> costs_of(const pipeline::TimelineFile& file);

}  // namespace flow::sim
