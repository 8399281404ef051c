#include "graph/program/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/program/communications.h"

namespace flow::graph {

namespace {

constexpr size_t kMaxRedistributions = 20;  // the most that are listed

std::string count_nodes(const Graph& graph) {
  std::array<int64_t, 3> by_phase{};
  int64_t stages = 1;
  for (const Node& node : graph.nodes) {
    ++by_phase[static_cast<size_t>(node.phase)];
    stages = std::max(stages, node.stage + 1);
  }
  return str(graph.nodes.size(), " nodes (", by_phase[0], " forward, ", by_phase[1], " backward, ",
             by_phase[2], " update) in ", stages, stages == 1 ? " stage" : " stages");
}

// One redistribution of the program at one line of the user's code.
struct Transfer {
  std::string what;
  int64_t bytes = 0;
  double time_us = 0;
  int64_t count = 0;
};

std::vector<Transfer> transfers_of(const Program& program, int64_t rank) {
  std::vector<Transfer> all;
  for (const Communication& it : communications_of(program, rank)) {
    if (it.kind != Communication::Kind::kCollective) continue;
    const Step& step = program.steps[it.step];
    const std::string what = str(step.file, ":", step.line, ": ", it.what);
    auto known = std::find_if(all.begin(), all.end(),
                              [&](const Transfer& transfer) { return transfer.what == what; });
    if (known == all.end()) known = all.insert(all.end(), {.what = what});
    known->bytes += it.bytes;
    known->time_us += it.time_us;
    ++known->count;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Transfer& a, const Transfer& b) { return a.time_us > b.time_us; });
  return all;
}

int64_t output_bytes_of(const Graph& graph, int64_t rank) {
  int64_t bytes = 0;
  for (const ValueId output : graph.outputs)
    bytes += static_cast<int64_t>(graph.value(output).meta_on(rank)->local_bytes());
  return bytes;
}

// Returns the ranks of each stage if there are several.
std::string describe_stages(const Graph& graph) {
  struct Stage {
    int64_t nodes = 0;
    std::set<int64_t> ranks = {};
  };

  std::map<int64_t, Stage> stages;
  for (const Node& node : graph.nodes) {
    Stage& stage = stages[node.stage];
    ++stage.nodes;
    for (const ValueId output : node.outputs) {
      const Placement& placement = graph.value(output).placement;
      if (!placement.defined() || node.op == &boxing::kRedistribute) continue;
      stage.ranks.insert(placement.ranks().begin(), placement.ranks().end());
    }
  }
  if (stages.size() < 2) return {};
  std::string text;
  for (const auto& [number, stage] : stages) {
    text += str("stage ", number, ": ", stage.nodes, " nodes on ranks");
    for (const int64_t rank : stage.ranks)
      text += str(' ', rank);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string summary_of(const CompiledArtifact& step, int64_t rank) {
  const Graph& graph = step.graph;
  const Program& program = step.program_of(rank);
  const auto written =
      std::count_if(graph.captures.begin(), graph.captures.end(),
                    [](const Capture& capture) { return capture.initial != capture.final_value; });
  std::string text =
      str("step: ", graph.inputs.size(), " inputs, ", graph.captures.size(),
          " tensors from outside, ", written, " of them written; ", count_nodes(graph), "\n");
  text += describe_stages(graph);
  text += "passes:";
  for (const PassResult& pass : step.passes)
    text += str(" ", pass.name, " ", pass.changes);
  text += str(
      "\nprogram of rank ", rank, ": ", program.steps.size(), " steps",
      program.runs.empty()
          ? ""
          : str(" in ", program.blocks.size(), " blocks, ", program.runs.size(), " runs of them"),
      ", arena of ", program.arena_bytes, " bytes, outputs of ", output_bytes_of(graph, rank),
      " bytes; at most ", peak_bytes_of(step, rank), " bytes from the allocator\n");
  if (step.from_cache) {
    text += str("read from the plan ", step.key.name(), "\n");
  } else if (!step.cache_miss_reason.empty()) {
    text += str("compiled, because what was saved is not used: ", step.cache_miss_reason, "\n");
  }
  text += str("certificate: ", step.certificate.ranks.size(),
              step.certificate.ranks.size() == 1 ? " rank" : " ranks",
              ", no rank waits for ever, groups agree on every collective\n");
  text += to_string(step.certificate);
  const bool has_local = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) {
    return !graph.value(id).placement.defined();
  });
  if (has_local && step.is_global()) {
    text += str("the bytes of other ranks are those for local inputs like rank ", rank,
                "'s; at the first run ranks compare their communications\n");
  }
  const std::vector<Transfer> transfers = transfers_of(program, rank);
  if (transfers.empty()) return text;
  text += str("redistributions of rank ", rank, ", the costliest first:\n");
  for (size_t i = 0; i < std::min(transfers.size(), kMaxRedistributions); ++i) {
    const Transfer& transfer = transfers[i];
    text += str("  ", transfer.what, ", ", transfer.count, " times, ", transfer.bytes,
                " bytes, predicted ", transfer.time_us, " us\n");
  }
  if (transfers.size() > kMaxRedistributions) {
    text += str("  and ", transfers.size() - kMaxRedistributions, " others\n");
  }
  return text;
}

}  // namespace flow::graph
