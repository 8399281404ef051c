// Names the thread rank that a signal such as SIGSEGV ends. All thread ranks share one process, so
// nobody outside it can tell.
#pragma once

#include <cstddef>
#include <memory>

namespace flow::boxing {

// From this call on, a signal that reports an error of the program (SIGSEGV, SIGBUS, SIGFPE,
// SIGILL, SIGABRT) writes the status of the rank whose thread it hit, and then ends the process as
// it would have done. Threads that are attached to no rank are reported as unknown. Signals that
// the program or a sanitizer handles stay with them.
void report_crashes();

// The stack on which the calling thread handles signals. Without it a stack overflow could not be
// reported.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace flow::boxing
