#include "core/log.h"

#include <mutex>
#include <set>

#include "core/context.h"
#include "core/error.h"

#ifdef FLOW_WITH_GLOG
#include <glog/logging.h>
#else
#include <iostream>
#endif

namespace flow {

namespace {
std::string with_rank(const std::string& message) {
  const ThreadState* state = internal::current_thread_state;
  return str("[rank ", state == nullptr ? 0 : state->context->rank(), "] ", message);
}

// The warnings that a rank has given.
struct GivenWarnings {
  std::mutex mutex;
  std::set<std::string> texts;  // guarded by mutex
};
}  // namespace

std::string place_text(Site site, const std::string* module_path) {
  const std::string line = site.is_known() ? str(site.file(), ':', site.line()) : "";
  if (module_path == nullptr || module_path->empty()) return line.empty() ? "" : line + ": ";
  return str(line, line.empty() ? "in " : ", in ", *module_path, ": ");
}

void warn_at(Site site, const std::string& message) {
  const ThreadState& state = thread_state();
  const std::string text = place_text(user_site(site), state.module_path) + message;
  auto& given = state.context->slot<GivenWarnings>();
  const std::lock_guard lock(given.mutex);
  if (given.texts.insert(text).second) log_warning(text);
}

#ifdef FLOW_WITH_GLOG
void log_info(const std::string& message) {
  LOG(INFO) << with_rank(message);
}

void log_warning(const std::string& message) {
  LOG(WARNING) << with_rank(message);
}
#else
void log_info(const std::string& message) {
  std::clog << with_rank(message) + "\n";
}

void log_warning(const std::string& message) {
  std::clog << with_rank("warning: " + message) + "\n";
}
#endif

}  // namespace flow
