#include "boxing/ranks/forked_child.h"

#include <atomic>

#include <pthread.h>

#include "boxing/comm/process_world.h"
#include "core/flow_calls.h"

namespace flow::boxing {

namespace {

std::atomic<int> num_jobs{0};  // of which this process is a rank, or has thread ranks
std::atomic<bool> is_child{false};

// Runs in the child, where only the forking thread exists and any lock may be held.
void leave_job() {
  if (num_jobs.load() == 0) return;
  is_child.store(true);
  forget_process_world();
  refuse_flow_calls(
      "[fork] a rank made this process with fork(), and only the rank itself may call flow; let "
      "the child call exec, or start it before the first flow call");
}

void join_job() {
  static const int registered = pthread_atfork(nullptr, nullptr, leave_job);
  static_cast<void>(registered);  // fails only without memory; forks are then not noticed
  num_jobs.fetch_add(1);
}

}  // namespace

void forbid_forked_children() {
  join_job();
}

ForkedChildrenForbidden::ForkedChildrenForbidden() {
  join_job();
}

ForkedChildrenForbidden::~ForkedChildrenForbidden() {
  num_jobs.fetch_sub(1);
}

bool is_forked_child() {
  return is_child.load();
}

}  // namespace flow::boxing
