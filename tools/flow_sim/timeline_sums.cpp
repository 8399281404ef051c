#include "tools/flow_sim/timeline_sums.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/error.h"

namespace flow::sim {

namespace {

using pipeline::Action;
using pipeline::ActionKind;
using pipeline::StageCost;
using pipeline::TimelineEvent;
using pipeline::TimelineFile;
using Kind = TimelineEvent::Kind;

double& part_of(StageCost& cost, ActionKind kind) {
  const std::array parts{&cost.forward, &cost.backward, &cost.weight};
  return *parts[static_cast<size_t>(kind)];
}

// The actions of one run on one rank, by start.
using Actions = std::vector<const TimelineEvent*>;

std::map<int64_t, std::map<int64_t, Actions>> actions_by_run(const TimelineFile& file) {
  std::map<int64_t, std::map<int64_t, Actions>> runs;
  for (const TimelineEvent& event : file.events) {
    if (event.kind == Kind::kAction) runs[event.run][event.rank].push_back(&event);
  }
  for (auto& [run, ranks] : runs) {
    for (auto& [rank, actions] : ranks) {
      std::stable_sort(actions.begin(), actions.end(),
                       [](const auto* a, const auto* b) { return a->start_us < b->start_us; });
    }
  }
  return runs;
}

double end_of(const TimelineEvent& event) {
  return event.start_us + event.duration_us;
}

void add_rank(TimelineSums& sums, const Actions& actions, double begin, double end) {
  const double span = end - begin;
  RankShares& shares = sums.ranks[actions.front()->rank];
  double free_at = begin;
  for (const TimelineEvent* event : actions) {
    const double before = std::max(event->start_us - free_at, 0.0);
    (event == actions.front() ? shares.start : shares.between) += before / span;
    shares.between += event->waiting_us / span;
    shares.busy += (event->duration_us - event->waiting_us) / span;
    sums.wait_before_us[event->action] += before + event->waiting_us;
    free_at = std::max(free_at, end_of(*event));
  }
  shares.end += (end - free_at) / span;
}

std::vector<int64_t> most_kept(const TimelineFile& file, const Actions& actions) {
  const ActionKind last = file.schedule.has_weights() ? ActionKind::kWeight : ActionKind::kBackward;
  std::vector<int64_t> now(static_cast<size_t>(file.schedule.num_stages), 0);
  std::vector<int64_t> most = now;
  for (const TimelineEvent* event : actions) {
    const auto stage = static_cast<size_t>(event->action.stage);
    if (event->action.kind == ActionKind::kForward) {
      most[stage] = std::max(most[stage], ++now[stage]);
    }
    if (event->action.kind == last) --now[stage];
  }
  return most;
}

}  // namespace

TimelineSums sum_up(const TimelineFile& file) {
  const auto runs = actions_by_run(file);
  if (runs.empty()) {
    throw InvalidArgument(
        "[flow-sim] the timeline has no actions; give the timeline of a pipeline");
  }
  const auto num_stages = static_cast<size_t>(file.schedule.num_stages);
  TimelineSums sums;
  sums.stages.assign(num_stages, {0, 0, 0});
  sums.kept_by_stage.assign(num_stages, 0);
  std::vector<std::array<double, 3>> counts(num_stages, {0, 0, 0});
  for (const auto& [run, ranks] : runs) {
    double begin = std::numeric_limits<double>::max(), end = 0;
    for (const auto& [rank, actions] : ranks) {
      for (const TimelineEvent* event : actions) {
        begin = std::min(begin, event->start_us);
        end = std::max(end, end_of(*event));
        const auto stage = static_cast<size_t>(event->action.stage);
        part_of(sums.stages[stage], event->action.kind) += event->duration_us - event->waiting_us;
        counts[stage][static_cast<size_t>(event->action.kind)] += 1;
      }
    }
    if (!(end > begin)) {
      throw InvalidArgument(
          "[flow-sim] all actions of the timeline take no time; give another timeline");
    }
    sums.span_us += end - begin;
    for (const auto& [rank, actions] : ranks) {
      add_rank(sums, actions, begin, end);
      const std::vector<int64_t> kept = most_kept(file, actions);
      for (size_t stage = 0; stage < num_stages; ++stage)
        sums.kept_by_stage[stage] = std::max(sums.kept_by_stage[stage], kept[stage]);
    }
  }
  const auto num_runs = static_cast<double>(runs.size());
  sums.span_us /= num_runs;
  double busy = 0;
  for (auto& [rank, shares] : sums.ranks) {
    for (double* share : {&shares.busy, &shares.start, &shares.between, &shares.end})
      *share /= num_runs;
    busy += shares.busy;
  }
  sums.bubble = 1 - busy / static_cast<double>(sums.ranks.size());
  for (auto& [action, wait] : sums.wait_before_us) {
    const std::vector<int64_t>& ranks = file.ranks[static_cast<size_t>(action.stage)];
    wait /= num_runs * static_cast<double>(ranks.size());
  }
  for (size_t stage = 0; stage < num_stages; ++stage) {
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward, ActionKind::kWeight})
      part_of(sums.stages[stage], kind) /= std::max(counts[stage][static_cast<size_t>(kind)], 1.0);
  }
  for (const TimelineEvent& event : file.events) {
    if (event.kind != Kind::kTransfer) continue;
    ++sums.num_messages;
    sums.message_bytes += event.bytes;
    sums.message_us += event.duration_us;
  }
  if (sums.num_messages > 0) sums.message_us /= static_cast<double>(sums.num_messages);
  sums.num_messages /= static_cast<int64_t>(runs.size());
  sums.message_bytes /= static_cast<int64_t>(runs.size());
  return sums;
}

std::vector<StageCost> costs_of(const TimelineFile& file) {
  if (!file.is_measured) return file.costs;
  std::vector<StageCost> costs = sum_up(file).stages;
  if (file.schedule.has_weights()) return costs;
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    const StageCost predicted = file.costs.empty() ? StageCost() : file.costs[stage];
    const double both = predicted.backward + predicted.weight;
    const double share = both > 0 ? predicted.weight / both : 0.5;
    costs[stage].weight = share * costs[stage].backward;
    costs[stage].backward -= costs[stage].weight;
  }
  return costs;
}

}  // namespace flow::sim
