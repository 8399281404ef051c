// What report.json says beside how a job's last attempt ended.
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

// The report with "attempts" (where there was more than one) and "nodes" (where they are given);
// `exit_code` is the job's; `obstacle` says why it was not started again, if it should have been.
std::string complete_report(const std::vector<Attempt>& attempts, const nlohmann::json& nodes,
                            int exit_code, const std::string& obstacle);

}  // namespace flowrun
