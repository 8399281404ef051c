// Signals of a process that flow shares with the program.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace flow {

// Holds back the signals that arrive for the calling thread until the end of the scope. Signals
// that report an error of the program, such as SIGSEGV, are not held back. A thread that is started
// in the scope holds them back until its end.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that receives no signals: they are for the program's own threads. Throws
// std::system_error if the system cannot start it.
std::thread start_quiet_thread(std::function<void()> body);

// Installs a handler for a signal whose action is the default one; a handler of the program stays.
void handle_if_default(int number, void (*handler)(int), int flags);

}  // namespace flow
