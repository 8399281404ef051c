// What differs between two plans.
#pragma once

#include <string>

#include "graph/plan_file/plan_reader.h"

namespace flow::tools {

// Returns a text with a section for each kind of difference: what the plans were compiled from,
// inputs and outputs, passes, and for ranks the steps, the memory and the transfers. Lines begin
// with "-" (only in `a`), "+" (only in `b`) or "~" (both, changed). Empty if the plans are the same
// except for the build of the program that compiled them.
std::string difference(const graph::SavedPlan& a, const graph::SavedPlan& b);

}  // namespace flow::tools
