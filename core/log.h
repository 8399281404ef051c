// Logging through glog where it is built in (FLOW_GLOG), else to stderr. Messages start with the
// rank, as ranks may be threads. The library never initialises glog and writes nothing to stdout.
#pragma once

#include <string>

namespace flow {

// At most once per run or compile / something the user should act on.
void log_info(const std::string& message);
void log_warning(const std::string& message);

}  // namespace flow
