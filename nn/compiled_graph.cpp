#include "nn/compiled_graph.h"

#include <algorithm>

#include "core/error.h"
#include "graph/ir/graph_uses.h"
#include "graph/plan_file/plan_file.h"
#include "nn/file.h"
#include "pipeline/report.h"

namespace flow::nn {

namespace {

// For an output of a node that writes in place, returns the position of the input that it
// overwrites. Returns the first position if only the call, and not the op, is in place.
size_t written_input(const graph::Node& node, graph::ValueId output) {
  if (node.op->mutates == 0) return 0;
  size_t input = 0;
  for (const graph::ValueId id : node.outputs) {
    while ((node.op->mutates >> input & 1) == 0)
      ++input;
    if (id == output) break;
    ++input;
  }
  return input;
}

}  // namespace

pipeline::TimelineFile CompiledGraph::State::timeline_frame() const {
  const graph::Graph& step = plan->graph();
  if (!batching.is_needed(step)) return {};
  return pipeline::timeline_frame(step, batching.cut(step), batching.schedule(step),
                                  to_string(batching.rule));
}

bool CompiledGraph::State::has_modes() const {
  return std::all_of(modules.begin(), modules.end(), [](const CalledModule& called) {
    return called.module.is_training() == called.is_training;
  });
}

bool CompiledGraph::State::fits() const {
  return std::all_of(steps.begin(), steps.end(),
                     [](const optim::TracedStep& step) { return step.fits(); }) &&
         plan->fits();
}

void CompiledGraph::State::check_guarded_writes() const {
  const graph::Graph& step = plan->graph();
  const graph::GraphUses uses(step);
  for (const graph::Capture& capture : step.captures) {
    const graph::Node* writer = nullptr;
    for (graph::ValueId id = capture.final_value; id != capture.initial;) {
      const bool was_guarded = writer != nullptr && writer->guard >= 0;
      writer = uses.maker_node(id);
      if (writer == nullptr || (writer->guard < 0 && !was_guarded)) break;
      if (writer->guard < 0) {
        throw Unsupported(
            str("[graph] ", writer->op->name, " at ", writer->file, ":", writer->line,
                " writes to a tensor that an optimizer also writes, ",
                "and a GradScaler may skip the optimizer's step; write to it outside the graph"));
      }
      id = writer->inputs[written_input(*writer, id)];
    }
  }
}

void CompiledGraph::State::check_writes() const {
  std::vector<Tensor> owned;
  for (const CalledModule& called : modules) {
    for (auto& [name, tensor] : called.module.named_parameters())
      owned.push_back(tensor);
    for (auto& [name, tensor] : called.module.named_buffers())
      owned.push_back(tensor);
  }
  const graph::Graph& step = plan->graph();
  const graph::GraphUses uses(step);
  for (size_t i = 0; i < step.captures.size(); ++i) {
    const graph::Capture& capture = step.captures[i];
    const Tensor& tensor = plan->captures()[i];
    if (capture.initial == capture.final_value) continue;
    const auto is_it = [&](const Tensor& other) { return other.is_same(tensor); };
    if (std::any_of(owned.begin(), owned.end(), is_it)) continue;
    if (std::any_of(steps.begin(), steps.end(),
                    [&](const optim::TracedStep& s) { return s.owns(tensor); })) {
      continue;
    }
    const graph::Node* writer = uses.maker_node(capture.final_value);
    if (writer == nullptr) continue;
    throw InvalidArgument(str("[graph] ", writer->op->name, " at ", writer->file, ":", writer->line,
                              " writes to ", tensor.meta(),
                              " from outside the graph, which is not a parameter or buffer of a "
                              "module that build() calls; return the new value instead"));
  }
}

CompiledGraph::CompiledGraph() : state_(std::make_unique<State>()) {}

CompiledGraph::~CompiledGraph() = default;

const graph::CompiledStep& CompiledGraph::plan() const {
  return *state_->plan;
}

std::string CompiledGraph::summary() const {
  const pipeline::MicroBatching& batching = state_->batching;
  const graph::Graph& step = state_->plan->graph();
  if (!batching.is_needed(step)) return state_->plan->summary();
  return state_->plan->summary() + pipeline::describe(step, batching.cut(step),
                                                      batching.schedule(step),
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
