// Logging through glog if it is built in (FLOW_GLOG), else to stderr. Messages start with the rank,
// because ranks may be threads. The library never initialises glog and never logs to stdout.
#pragma once

#include <string>

namespace flow {

// log_info: at most once per run or per compile. log_warning: something that the user should act
// on.
void log_info(const std::string& message);
void log_warning(const std::string& message);

}  // namespace flow
