#include "support/plan_text.h"

#include <cstdint>
#include <map>
#include <vector>

#include "core/error.h"
#include "graph/run/compiled_step.h"
#include "tools/page/markup.h"

namespace examples {

namespace {

using flow::graph::CompiledArtifact;
using flow::tools::bytes_text;

// Parameters, optimizer state and what else the step finds on a rank.
int64_t bytes_from_outside(const CompiledArtifact& step, int64_t rank) {
  int64_t bytes = 0;
  for (const flow::graph::Capture& capture : step.graph.captures) {
    bytes += static_cast<int64_t>(step.graph.value(capture.initial).meta_on(rank)->local_bytes());
  }
  return bytes;
}

}  // namespace

std::string describe_plan(const flow::nn::CompiledGraph& plan) {
  const CompiledArtifact& step = plan.plan().step();
  int64_t collectives = 0, messages = 0;
  std::map<std::string, std::string> ranks_by_need;
  std::vector<std::string> needs;
  for (const flow::graph::RankCertificate& rank : step.certificate.ranks) {
    collectives += rank.num_collectives;
    messages += rank.num_messages;
    const std::string need = flow::str(
        bytes_text(peak_bytes_of(step, rank.rank)), " in a step and ",
        bytes_text(bytes_from_outside(step, rank.rank)), " of parameters and optimizer state");
    std::string& ranks = ranks_by_need[need];
    if (ranks.empty()) needs.push_back(need);
    ranks += flow::str(ranks.empty() ? "" : ", ", rank.rank);
  }
  const size_t count = step.certificate.ranks.size();
  std::string text =
      flow::str("certificate: ", count, count == 1 ? " rank" : " ranks",
                ", no rank waits for ever, groups agree on every collective; ", collectives,
                " calls of collectives and ", messages, " messages in a step\nmemory, predicted: ");
  for (size_t i = 0; i < needs.size(); ++i) {
    const std::string& ranks = ranks_by_need[needs[i]];
    const bool is_one = ranks.find(',') == std::string::npos;
    text += flow::str(i == 0 ? "" : "; ", is_one ? "rank " : "ranks ", ranks, ": ", needs[i]);
  }
  return text + '\n';
}

}  // namespace examples
