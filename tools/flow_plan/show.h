// The output of flow-plan for a saved plan.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace flow::tools {

struct PlanQuestions {
  std::string path;
  int64_t rank = 0;  // the rank whose redistributions the summary lists
  bool key = false;
  bool ir = false;
  bool certificate = false;
  std::optional<int64_t> program;  // the rank whose program is printed
  bool check = false;
};

// Reads the plan and answers the questions; without a question, returns the summary. Throws IoError
// or BadFile if the file cannot be read, InvalidArgument if the plan does not have the rank, and
// InternalError if the certificate is wrong.
void show_plan(const PlanQuestions& questions, std::ostream& out);

}  // namespace flow::tools
