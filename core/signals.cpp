#include "core/signals.h"

#include <csignal>
#include <utility>

namespace flow {

namespace {

// Blocks all signals of this thread for a scope. A thread that it starts inherits the mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_quiet_thread(std::function<void()> body) {
  const BlockedSignals blocked;
  return std::thread(std::move(body));
}

void handle_if_default(int number, void (*handler)(int), int flags) {
  struct sigaction current = {};
  sigaction(number, nullptr, &current);
  const bool is_default = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_DFL;
  if (!is_default) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

}  // namespace flow
