#include "tools/flow_plan/show.h"

#include <ostream>

#include "core/error.h"
#include "eager/runtime.h"
#include "graph/ir/ir_text.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/program/planning_world.h"
#include "graph/program/summary.h"
#include "nn/file.h"

namespace flow::tools {

namespace {

int64_t checked_rank(const graph::CompiledArtifact& step, int64_t rank) {
  const auto ranks = static_cast<int64_t>(step.programs.size());
  if (rank < 0 || rank >= ranks) {
    throw InvalidArgument(str("[flow-plan] the plan has programs of ", ranks,
                              ranks == 1 ? " rank" : " ranks", "; received ", rank,
                              "; give one from 0 to ", ranks - 1));
  }
  return rank;
}

void show_origin(const graph::PlanKey& key, std::ostream& out) {
  for (const auto& [name, value] : key.facts)
    out << name << ": " << value << '\n';
}

// Proves the certificate again from the programs in the file.
void check(const graph::CompiledArtifact& step, std::ostream& out) {
  const std::string proved = to_string(graph::certify(step.programs, step.certificate.rank_kind));
  if (proved != to_string(step.certificate)) {
    throw InternalError(
        str("[flow-plan] the certificate in the file does not match its programs; "
            "they prove\n",
            proved));
  }
  out << "checked: no rank waits forever, groups agree on every collective, memory is as stated\n";
}

}  // namespace

void show_plan(const PlanQuestions& questions, std::ostream& out) {
  const graph::SavedPlan plan =
      graph::parse_plan(nn::read_text(questions.path), questions.path, op_table());
  const graph::CompiledArtifact& step = plan.step;
  const PlanningWorld world(static_cast<int64_t>(step.programs.size()));
  if (questions.key) show_origin(plan.key, out);
  if (questions.ir) out << to_string(step.graph);
  if (questions.program) {
    const int64_t rank = checked_rank(step, *questions.program);
    out << to_string(step.program_of(rank), rank);
  }
  if (questions.certificate) out << to_string(step.certificate);
  if (questions.check) check(step, out);
  const bool is_asked = questions.key || questions.ir || questions.program ||
                        questions.certificate || questions.check;
  if (!is_asked) out << summary_of(step, checked_rank(step, questions.rank));
}

}  // namespace flow::tools
