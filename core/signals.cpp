#include "core/signals.h"

#include <utility>

namespace flow {

HeldSignals::HeldSignals() {
  sigset_t held;
  sigfillset(&held);
  for (const int error : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&held, error);
  pthread_sigmask(SIG_SETMASK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::thread start_quiet_thread(std::function<void()> body) {
  const HeldSignals held;
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
