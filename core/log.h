// Logging through glog if it is built in (FLOW_GLOG), else to stderr. Messages start with the rank,
// because ranks may be threads. The library never initialises glog and never logs to stdout.
#pragma once

#include <string>

#include "core/site.h"

namespace flow {

// log_info: at most once per run or per compile. log_warning: something that the user should act
// on.
void log_info(const std::string& message);
void log_warning(const std::string& message);

// How errors and warnings begin: prints "train.cpp:41, in blocks.3.mlp: ", without the part that is
// not known. A null or empty path stands for a place outside modules.
std::string place_text(Site site, const std::string* module_path);
// Warns about the line `site` of the user's program, or about the line of the enclosing scope if
// `site` is inside the library: once for each line and message. The text begins with the place, as
// that of an error does.
void warn_at(Site site, const std::string& message);

}  // namespace flow
