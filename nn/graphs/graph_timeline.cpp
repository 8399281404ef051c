#include "nn/graphs/graph_timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "pipeline/timeline_recorder.h"

namespace flow::nn {

namespace {

// Throws Unsupported for local tensors on several ranks: each rank may run something else then.
void check_ranks(const graph::CompiledStep& plan) {
  const std::vector<graph::Value>& values = plan.graph().values;
  const bool is_global = std::any_of(values.begin(), values.end(), [](const graph::Value& value) {
    return value.placement.defined();
  });
  if (is_global || env::world_size() == 1) return;
  throw Unsupported(str("[graph] a timeline cannot be recorded for a graph of local tensors on ",
                        env::world_size(),
                        " ranks, because each rank may run something else; use global tensors, or "
                        "run it on one rank"));
}

}  // namespace

GraphTimeline::GraphTimeline(std::string path, const TimelineOptions& options)
    : path_(std::move(path)), options_(options) {
  if (options.runs >= 1 && options.skip >= 0) return;
  throw InvalidArgument(str("[graph] a timeline needs runs >= 1 and skip >= 0; received ",
                            options.runs, " and ", options.skip));
}

GraphTimeline::Recording& GraphTimeline::recording_of(
    const std::shared_ptr<graph::CompiledStep>& plan) {
  const auto known = std::find_if(recordings_.begin(), recordings_.end(),
                                  [&](const Recording& it) { return it.plan.lock() == plan; });
  if (known != recordings_.end()) return *known;
  check_ranks(*plan);
  std::erase_if(recordings_, [](const Recording& it) { return it.plan.expired(); });
  return recordings_.emplace_back(Recording{.plan = plan});
}

bool GraphTimeline::begin_run(const std::shared_ptr<graph::CompiledStep>& plan) {
  if (is_written_) return false;
  Recording& recording = recording_of(plan);
  if (recording.num_runs < options_.skip) {
    ++recording.num_runs;
    return false;
  }
  plan->record_steps(true);
  return true;
}

void GraphTimeline::end_run(const std::shared_ptr<graph::CompiledStep>& plan,
                            const std::function<pipeline::TimelineFile()>& frame) {
  Recording& recording = recording_of(plan);
  std::vector<pipeline::TimelineEvent> events = pipeline::measured_events(
      plan->program(), plan->last_steps(), recording.num_runs - options_.skip, options_.kernels);
  recording.events.insert(recording.events.end(), std::make_move_iterator(events.begin()),
                          std::make_move_iterator(events.end()));
  if (++recording.num_runs < options_.skip + options_.runs) return;
  events = std::move(recording.events);
  stop();
  pipeline::write_measured_timeline(path_, frame(), std::move(events));
}

void GraphTimeline::stop() {
  is_written_ = true;
  for (const Recording& recording : recordings_) {
    if (const auto plan = recording.plan.lock()) plan->record_steps(false);
  }
  recordings_.clear();
}

}  // namespace flow::nn
