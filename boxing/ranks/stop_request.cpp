#include "boxing/ranks/stop_request.h"

#include <atomic>
#include <csignal>

#include "boxing/comm/communicator.h"
#include "core/context.h"

namespace flow::env {

namespace {

std::atomic<bool> is_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores it");

extern "C" void flow_note_stop_request(int /*signal*/) {
  is_requested.store(true);
}

}  // namespace
}  // namespace flow::env

namespace flow::boxing {

void take_over_stop_signals() {
  for (const int number : {SIGTERM, SIGUSR1}) {
    struct sigaction current = {};
    sigaction(number, nullptr, &current);
    const bool is_the_programs = (current.sa_flags & SA_SIGINFO) != 0 ||
                                 (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN);
    if (is_the_programs) continue;
    struct sigaction action = {};
    action.sa_handler = env::flow_note_stop_request;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

}  // namespace flow::boxing

namespace flow::env {

bool stop_requested(Site site) {
  static const bool has_taken_over = (boxing::take_over_stop_signals(), true);
  static_cast<void>(has_taken_over);
  const uint8_t mine = is_requested.load() ? 1 : 0;
  uint8_t any = 0;
  boxing::world_communicator(*thread_state().context)
      .all_reduce(&mine, &any, 1, DType::kUInt8, boxing::ReduceOp::kMax,
                  {.op = "stop_requested", .site = site});
  return any != 0;
}

}  // namespace flow::env
