#include "pipeline/simulate.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace flow::pipeline {

namespace {

double duration_of(const Schedule& schedule, const std::vector<StageCost>& costs,
                   const Action& action, bool has_weights) {
  StageCost cost;
  if (!costs.empty()) cost = costs[static_cast<size_t>(action.stage)];
  FLOW_ASSERT(action.stage < schedule.num_stages, "stage ", action.stage);
  switch (action.kind) {
    case ActionKind::kForward:
      return cost.forward;
    case ActionKind::kBackward:
      return has_weights ? cost.backward : cost.backward + cost.weight;
    case ActionKind::kWeight:
      return cost.weight;
  }
  return 0;
}

// The largest number of micro-batches, over time, whose forward has begun and whose last action has
// not ended, counting the actions for which `counts` is true.
template <class Counts>
int64_t most_in_flight(const std::vector<TimedAction>& actions, bool has_weights,
                       const Counts& counts) {
  const ActionKind last = has_weights ? ActionKind::kWeight : ActionKind::kBackward;
  int64_t now = 0, most = 0;
  for (const TimedAction& timed : actions) {  // a worker's actions do not overlap
    if (!counts(timed)) continue;
    if (timed.action.kind == ActionKind::kForward) most = std::max(most, ++now);
    if (timed.action.kind == last) --now;
  }
  return most;
}

}  // namespace

double Timeline::bubble() const {
  if (makespan <= 0) return 0;
  const double worked = std::accumulate(busy.begin(), busy.end(), 0.0);
  return 1 - worked / (makespan * static_cast<double>(busy.size()));
}

std::vector<int64_t> workers_of(const Schedule& schedule) {
  std::vector<int64_t> workers(static_cast<size_t>(schedule.num_stages), 0);
  for (size_t w = 0; w < schedule.actions.size(); ++w) {
    for (const Action& action : schedule.actions[w])
      workers[static_cast<size_t>(action.stage)] = static_cast<int64_t>(w);
  }
  return workers;
}

Timeline simulate(const Schedule& schedule, const std::vector<StageCost>& costs,
                  const std::vector<TransferCost>& transfers) {
  const std::vector<int64_t> workers = workers_of(schedule);
  const auto transfer = [&](const Action& from, const Action& to) {
    const auto first = static_cast<size_t>(std::min(from.stage, to.stage));
    if (from.stage == to.stage || transfers.empty() || workers[first] == workers[first + 1]) {
      return 0.0;
    }
    return from.stage < to.stage ? transfers[first].forward : transfers[first].backward;
  };
  const bool has_weights = schedule.has_weights();
  const size_t num_workers = schedule.actions.size();
  Timeline timeline;
  timeline.busy.assign(num_workers, 0);
  std::vector<double> ends(num_actions(schedule), -1);  // -1: has not run
  std::vector<size_t> next(num_workers, 0);
  std::vector<double> free_at(num_workers, 0);
  bool progressed = true;
  while (progressed) {
    progressed = false;
    for (size_t w = 0; w < num_workers; ++w) {
      while (next[w] < schedule.actions[w].size()) {
        const Action& action = schedule.actions[w][next[w]];
        double begin = free_at[w];
        bool is_ready = true;
        for (const Action& need : needs_of(schedule, action)) {
          const double end = ends[index_of(schedule, need)];
          is_ready = is_ready && end >= 0;
          if (is_ready) begin = std::max(begin, end + transfer(need, action));
        }
        if (!is_ready) break;
        const double duration = duration_of(schedule, costs, action, has_weights);
        free_at[w] = begin + duration;
        ends[index_of(schedule, action)] = free_at[w];
        timeline.busy[w] += duration;
        timeline.makespan = std::max(timeline.makespan, free_at[w]);
        timeline.actions.push_back({action, static_cast<int64_t>(w), begin, free_at[w]});
        ++next[w];
        progressed = true;
      }
    }
  }
  std::stable_sort(timeline.actions.begin(), timeline.actions.end(),
                   [](const TimedAction& a, const TimedAction& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.worker < b.worker;
                   });
  for (size_t w = 0; w < num_workers; ++w) {
    timeline.in_flight.push_back(most_in_flight(
        timeline.actions, has_weights,
        [&](const TimedAction& timed) { return timed.worker == static_cast<int64_t>(w); }));
  }
  for (int64_t stage = 0; stage < schedule.num_stages; ++stage) {
    timeline.kept_by_stage.push_back(
        most_in_flight(timeline.actions, has_weights,
                       [&](const TimedAction& timed) { return timed.action.stage == stage; }));
  }
  return timeline;
}

}  // namespace flow::pipeline
