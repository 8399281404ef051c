// What flow-plan prints of a saved plan.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace flow::tools {

struct PlanQuestions {
  std::string path;
  int64_t rank = 0;  // whose redistributions the summary has
  bool key = false;
  bool ir = false;
  bool certificate = false;
  std::optional<int64_t> program;  // of this rank
  bool check = false;
};

// Reads the plan and answers; without a question asked, its summary. Throws IoError or BadFile for
// the file, InvalidArgument for a rank that the plan does not have, and InternalError where the
// certificate does not hold.
void show_plan(const PlanQuestions& questions, std::ostream& out);

}  // namespace flow::tools
