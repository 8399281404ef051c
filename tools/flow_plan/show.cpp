#include "tools/flow_plan/show.h"

#include <ostream>

#include "graph/ir/ir_text.h"
#include "graph/program/planning_world.h"
#include "graph/program/summary.h"
#include "tools/flow_plan/saved_plan.h"

namespace flow::tools {

namespace {

void show_origin(const graph::PlanKey& key, std::ostream& out) {
  for (const auto& [name, value] : key.facts)
    out << name << ": " << value << '\n';
}

}  // namespace

void show_plan(const PlanQuestions& questions, std::ostream& out) {
  const graph::SavedPlan plan = read_plan(questions.path);
  const graph::CompiledArtifact& step = plan.step;
  const PlanningWorld world(static_cast<int64_t>(step.programs.size()));
  if (questions.key) show_origin(plan.key, out);
  if (questions.ir) out << to_string(step.graph);
  if (questions.program) {
    const int64_t rank = checked_rank(step, *questions.program);
    out << to_string(step.program_of(rank), rank);
  }
  if (questions.certificate) out << to_string(step.certificate);
  if (questions.check) {
    check_certificate(step);
    out << "checked: no rank waits forever, groups agree on every collective, memory is as "
           "stated\n";
  }
  const bool is_asked = questions.key || questions.ir || questions.program ||
                        questions.certificate || questions.check;
  if (!is_asked) out << summary_of(step, checked_rank(step, questions.rank));
}

}  // namespace flow::tools
