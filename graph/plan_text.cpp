// A plan for people.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "graph/plan.h"

namespace flow::graph {

namespace {

constexpr size_t kMaxRedistributions = 20;  // listed

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

// One redistribution of the program, at one line of the user's.
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

}  // namespace

std::string Plan::summary() const {
  const auto written =
      std::count_if(graph().captures.begin(), graph().captures.end(),
                    [](const Capture& capture) { return capture.initial != capture.final_value; });
  std::string text =
      str("step: ", graph().inputs.size(), " inputs, ", captures_.size(), " tensors from outside, ",
          written, " of them written; ", count_nodes(graph()), "\n");
  text += "passes:";
  for (const PassResult& pass : passes())
    text += str(" ", pass.name, " ", pass.changes);
  text += str("\nprogram of rank ", rank_, ": ", program_->steps.size(), " steps, arena of ",
              program_->arena_bytes, " bytes, outputs of ", output_bytes(), " bytes\n");
  text += str("certificate: ", certificate().ranks.size(),
              certificate().ranks.size() == 1 ? " rank" : " ranks",
              ", no rank waits for ever, groups agree on every collective\n");
  text += to_string(certificate());
  const std::vector<Transfer> transfers = transfers_of(*program_, rank_);
  if (transfers.empty()) return text;
  text += str("redistributions of rank ", rank_, ", the costliest first:\n");
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
