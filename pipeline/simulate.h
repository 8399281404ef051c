// What a schedule will do, predicted: when each action runs, how long workers wait, and how many
// micro-batches they keep.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule.h"

namespace flow::pipeline {

// Times of a stage's actions for one micro-batch, in any unit. Where the schedule has no W, its
// time is part of B.
struct StageCost {
  double forward = 1;
  double backward = 1;  // with respect to inputs
  double weight = 1;
};

// How long the messages of one micro-batch take from a stage to the next one, and back; of two
// stages of one worker they take none. Workers go on meanwhile.
struct TransferCost {
  double forward = 0;
  double backward = 0;
};

struct TimedAction {
  Action action;
  int64_t worker = 0;
  double begin = 0;
  double end = 0;
};

struct Timeline {
  std::vector<TimedAction> actions;  // by begin, then worker
  double makespan = 0;
  std::vector<double> busy;  // by worker
  // By worker: the most micro-batches of its stages, counted for each, whose forward has begun and
  // whose last action has not ended.
  std::vector<int64_t> in_flight;
  // The same by stage.
  std::vector<int64_t> kept_by_stage;

  // The share of all workers' time in which they wait.
  double bubble() const;
};

// Each worker begins its next action as soon as what that needs is done and has arrived. `costs`
// are by stage, none: 1 each; `transfers` from each stage but the last to the next, none: they take
// no time. Pure. The schedule must be valid.
Timeline simulate(const Schedule& schedule, const std::vector<StageCost>& costs = {},
                  const std::vector<TransferCost>& transfers = {});

// The line of the schedule that each stage is in.
std::vector<int64_t> workers_of(const Schedule& schedule);

}  // namespace flow::pipeline
