#include "tools/flow_plan/saved_plan.h"

#include "core/error.h"
#include "eager/runtime.h"
#include "graph/program/certificate.h"
#include "nn/file.h"

namespace flow::tools {

graph::SavedPlan read_plan(const std::string& path) {
  return graph::parse_plan(nn::read_text(path), path, op_table());
}

int64_t checked_rank(const graph::CompiledArtifact& step, int64_t rank) {
  const auto ranks = static_cast<int64_t>(step.programs.size());
  if (rank < 0 || rank >= ranks) {
    throw InvalidArgument(str("[flow-plan] the plan has programs of ", ranks,
                              ranks == 1 ? " rank" : " ranks", "; received ", rank,
                              "; give one from 0 to ", ranks - 1));
  }
  return rank;
}

void check_certificate(const graph::CompiledArtifact& step) {
  const std::string proved = to_string(graph::certify(step.programs, step.certificate.rank_kind));
  if (proved == to_string(step.certificate)) return;
  throw InternalError(
      str("[flow-plan] the certificate in the file does not match its programs; they prove\n",
          proved, "compile the step again"));
}

}  // namespace flow::tools
