// The parts of report.json that describe the whole job and not only its last attempt.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/flowrun/verdict.h"

namespace flowrun {

struct Attempt {
  Verdict verdict;
  double seconds = 0;
};

// Removes from the report what is of interest only if the attempt is the last one.
void shorten(Attempt& attempt);

// The report with "attempts" (if there was more than one) and "nodes" (if there are any).
// `exit_code` is that of the job. `obstacle` says why the job could not be restarted, or is empty.
std::string complete_report(const std::vector<Attempt>& attempts, const nlohmann::json& nodes,
                            int exit_code, const std::string& obstacle);

}  // namespace flowrun
