#include "core/flow_calls.h"

#include <atomic>

#include "core/context.h"

namespace flow {

namespace {
std::atomic<const char*> refusal{nullptr};
}

void refuse_flow_calls(const char* reason) {
  refusal.store(reason);
  internal::current_thread_state = nullptr;
}

const char* refusal_of_flow_calls() {
  return refusal.load();
}

}  // namespace flow
