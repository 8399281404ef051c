#include "nn/compiled_graph.h"

#include "core/error.h"
#include "graph/plan_file/plan_writer.h"
#include "nn/compiled_graph_state.h"
#include "nn/file.h"
#include "pipeline/report.h"

namespace flow::nn {

CompiledGraph::CompiledGraph() : state_(std::make_unique<State>()) {}

CompiledGraph::~CompiledGraph() = default;

const graph::CompiledStep& CompiledGraph::plan() const {
  return *state_->plan;
}

std::string CompiledGraph::summary() const {
  const pipeline::MicroBatching& batching = state_->batching;
  const graph::Graph& step = state_->plan->graph();
  std::string text =
      state_->plan->summary() + state_->plan->cuda_graphs_summary() + state_->kept->summary();
  if (!batching.is_needed(step)) return text;
  return text + pipeline::describe(step, batching.cut(step), batching.schedule(step),
                                   to_string(batching.rule));
}

void CompiledGraph::save(const std::string& path) const {
  const graph::CompiledArtifact& step = state_->plan->step();
  const std::string bytes = graph::to_bytes(step, step.key);
  OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void CompiledGraph::write_predicted_timeline(const std::string& path) const {
  const pipeline::TimelineFile frame = state_->timeline_frame();
  if (frame.schedule.actions.empty()) {
    throw InvalidArgument(
        "[graph] a graph of one stage and one micro-batch has no schedule, so its timeline cannot "
        "be predicted; set config().set_micro_batches() to more than 1");
  }
  pipeline::write_timeline(path, pipeline::simulated_timeline(frame.schedule, frame.schedule_name,
                                                              frame.costs, {}, frame.ranks));
}

}  // namespace flow::nn
