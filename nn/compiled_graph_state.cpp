#include "nn/compiled_graph_state.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "graph/ir/graph_uses.h"

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

std::optional<StepVerifier> CompiledGraph::State::verifier_of_first_run(
    std::span<const Tensor> inputs) {
  if (std::exchange(has_run, true) || !StepVerifier::is_wanted(*plan)) return {};
  const bool has_own_statistics =
      batching.micro_batches > 1 &&
      std::any_of(traced.nodes.begin(), traced.nodes.end(), [](const graph::Node& node) {
        return node.op->micro_batch.takes_sums ||
               node.op->micro_batch.statistics.function != nullptr;
      });
  if (has_own_statistics) {
    log_warning(
        "[graph] FLOW_GRAPH_VERIFY: a step is not compared with eager mode, because batch "
        "norm normalises each micro-batch by its own statistics");
    return {};
  }
  return StepVerifier(traced, passes, *plan, inputs);
}

bool CompiledGraph::State::fits() const {
  return modules.fits() && tensors.fits() &&
         std::all_of(steps.begin(), steps.end(),
                     [](const optim::TracedStep& step) { return step.fits(); }) &&
         plan->fits();
}

void CompiledGraph::State::check_guarded_writes() const {
  // A pass may have joined a node with others, whose inputs have another order.
  const graph::GraphUses uses(traced);
  for (const graph::Capture& capture : traced.captures) {
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
  for (const ModuleBase& called : modules.called()) {
    for (auto& [name, tensor] : called.named_parameters())
      owned.push_back(tensor);
    for (auto& [name, tensor] : called.named_buffers())
      owned.push_back(tensor);
  }
  const graph::Graph& step = plan->graph();
  const graph::GraphUses uses(step);
  for (size_t i = 0; i < step.captures.size(); ++i) {
    const graph::Capture& capture = step.captures[i];
    const Tensor& tensor = plan->captures()[i];
    if (capture.initial == capture.final_value) continue;
    // The capture may be another handle on the memory of a buffer.
    const auto is_it = [&](const Tensor& other) {
      const TensorImpl &a = other.impl(), &b = tensor.impl();
      return &a == &b ||
             (a.storage && a.storage == b.storage && a.meta == b.meta && a.offset == b.offset);
    };
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

}  // namespace flow::nn
