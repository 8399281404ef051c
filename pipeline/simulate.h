// Predicts how a schedule runs: when each action runs, how long workers wait, and how many
// micro-batches they keep.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule.h"

namespace flow::pipeline {

// The times of a stage's actions for one micro-batch, in any unit. If the schedule has no W, its
// time is part of B.
struct StageCost {
  double forward = 1;
  double backward = 1;  // with respect to inputs
  double weight = 1;
};

// How long the messages of one micro-batch take from a stage to the next one, and back; none
// between two stages of one worker. Workers continue during a transfer.
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

  // The share of all workers' time that they wait.
  double bubble() const;
};

// Each worker begins its next action as soon as the action's needs are done and have arrived.
// `costs` are by stage, or 1 each if empty; `transfers` are from each stage to the next, or take no
// time if empty. Pure. Requires: the schedule is valid.
Timeline simulate(const Schedule& schedule, const std::vector<StageCost>& costs = {},
                  const std::vector<TransferCost>& transfers = {});

// The worker, a line of the schedule, of each stage.
std::vector<int64_t> workers_of(const Schedule& schedule);

}  // namespace flow::pipeline
