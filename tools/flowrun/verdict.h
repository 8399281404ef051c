// How a job ended: from what its ranks and their keepers have written down.
#pragma once

#include <cstdint>
#include <string>

#include "tools/flowrun/job.h"

namespace flowrun {

struct Verdict {
  int exit_code = 0;
  std::string summary;  // one line; empty when all went well
  std::string report;   // JSON; likewise
};

Verdict judge(const std::string& session, int64_t ranks, const JobEnd& end);

}  // namespace flowrun
