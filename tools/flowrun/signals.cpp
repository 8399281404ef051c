#include "tools/flowrun/signals.h"

#include <sys/signalfd.h>

namespace flowrun {

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (const int number : {SIGHUP, SIGINT}) {
    struct sigaction action {};

    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      ignored.push_back(number);
  }
  return ignored;
}

sigset_t forwarded_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&signals, number);
  for (const int number : ignored_signals())
    sigdelset(&signals, number);
  return signals;
}

int receive_signals(const sigset_t& signals) {
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

}  // namespace flowrun
