// The limits of the system that may be the reason why a job failed.
#pragma once

#include <string>

namespace flowrun {

// Names the limits on resources (ulimit) under which a job may fail without a clear error: few open
// files, little memory, short files. Empty if there are none.
std::string describe_tight_limits();

}  // namespace flowrun
