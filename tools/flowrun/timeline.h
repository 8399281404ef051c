// Timelines of jobs: --timeline DIR, or FLOW_TIMELINE.
#pragma once

#include <string>

#include "tools/flowrun/options.h"

namespace flowrun {

// Makes all ranks record to the folder that the options or FLOW_TIMELINE name, and removes what an
// earlier job has left there. Returns the folder; empty if no timeline is recorded. Throws JobError
// if the folder cannot be made.
std::string start_timeline(const Options& options);

// Merges what the ranks have recorded, and says on stderr where. Does nothing for an empty folder.
void end_timeline(const std::string& folder);

}  // namespace flowrun
