// What a timeline amounts to: who worked and waited for how long.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pipeline/timeline_file.h"

namespace flow::sim {

// Shares of a run's span, from its first action's begin to its last one's end; they add up to 1.
struct RankShares {
  double busy = 0;
  double start = 0;    // idle before the rank's first action
  double between = 0;  // idle between actions, and in them for messages
  double end = 0;      // idle after its last action
};

// Means over the runs.
struct TimelineSums {
  double span_us = 0;
  double bubble = 0;  // the share of all ranks' time in which they wait
  std::map<int64_t, RankShares> ranks;
  // By stage, over its ranks and micro-batches; without W, B is both.
  std::vector<pipeline::StageCost> stages;
  // By action, over ranks: how long the rank had waited when it began, in it too.
  std::map<pipeline::Action, double> wait_before_us;
  std::vector<int64_t> kept_by_stage;  // the most micro-batches, in any run
  int64_t num_messages = 0;            // in a run
  int64_t message_bytes = 0;           // likewise
  double message_us = 0;               // of one
};

// Throws InvalidArgument where there are no actions.
TimelineSums sum_up(const pipeline::TimelineFile& file);

// What the stages of a timeline take, measured or as given to the simulation. B and W that were
// measured as one are taken apart as they were predicted.
std::vector<pipeline::StageCost> costs_of(const pipeline::TimelineFile& file);

}  // namespace flow::sim
