// How a job ended, according to the records of its ranks and their keepers.
#pragma once

#include <cstdint>
#include <string>

#include "tools/flowrun/job.h"

namespace flowrun {

struct Verdict {
  int exit_code = 0;
  std::string summary;  // one line; empty if the job succeeded
  std::string report;   // JSON; empty if the job succeeded
};

Verdict judge(const std::string& session, int64_t ranks, const JobEnd& end);

}  // namespace flowrun
