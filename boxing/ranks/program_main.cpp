// What --wrap=main and --wrap=exit lead to. Part of the program also where flow is a shared object.
#include <atomic>
#include <cstdio>

#include <unistd.h>

#include "boxing/ranks/main_boundary.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
// The linker gives these their names.
int __real_main(int argc, char** argv, char** environment);
[[noreturn]] void __real_exit(int code);
int __wrap_main(int argc, char** argv, char** environment);
[[noreturn]] void __wrap_exit(int code);

int __wrap_main(int argc, char** argv, char** environment) {
  return flow::internal::run_program(__real_main, argc, argv, environment);
}

// The first code counts; no static is destroyed under a peer that still runs.
void __wrap_exit(int code) {
  static std::atomic_flag is_taken;
  if (!flow::internal::leave_program(code)) __real_exit(code);
  while (is_taken.test_and_set())
    pause();
  std::fflush(nullptr);
  _exit(code);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
