#include "tests/support/random_cases.h"

#include <chrono>
#include <iostream>

#include "tests/support/env_number.h"

namespace flow {

uint64_t first_case() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto today = static_cast<uint64_t>(now / std::chrono::hours(24));
  const uint64_t day = env_number("FLOW_TEST_DAY", today);
  return env_number("FLOW_TEST_CASE", env_number("FLOW_TEST_SEED", day) * 100000);
}

int num_cases(int usual) {
  return static_cast<int>(env_number("FLOW_TEST_CASES", static_cast<uint64_t>(usual)));
}

void print_cases() {
  std::cout << "from case " << first_case()
            << "; FLOW_TEST_CASE=N FLOW_TEST_CASES=1 runs case N alone\n";
}

}  // namespace flow
