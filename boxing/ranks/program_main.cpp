// The targets of --wrap=main and --wrap=exit. Linked into the program even if flow is a shared
// library.
#include <atomic>
#include <cstdio>

#include <unistd.h>

#include "boxing/ranks/main_boundary.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
// The linker defines these names.
int __real_main(int argc, char** argv, char** environment);
[[noreturn]] void __real_exit(int code);
int __wrap_main(int argc, char** argv, char** environment);
[[noreturn]] void __wrap_exit(int code);

int __wrap_main(int argc, char** argv, char** environment) {
  return flow::internal::run_program(__real_main, argc, argv, environment);
}

// The first code counts. No static object is destroyed while another rank still runs.
void __wrap_exit(int code) {
  static std::atomic_flag is_taken;
  const std::optional<int> at_once = flow::internal::leave_program(code);
  if (!at_once) __real_exit(code);
  while (is_taken.test_and_set())
    pause();
  std::fflush(nullptr);
  _exit(*at_once);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
