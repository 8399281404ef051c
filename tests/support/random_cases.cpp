#include "tests/support/random_cases.h"

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace flow {

uint64_t first_case() {
  const char* number = std::getenv("FLOW_TEST_CASE");
  if (number != nullptr) return std::strtoull(number, nullptr, 10);
  const char* seed = std::getenv("FLOW_TEST_SEED");
  if (seed != nullptr) return std::strtoull(seed, nullptr, 10) * 100000;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(now / std::chrono::hours(24)) * 100000;
}

int num_cases(int usual) {
  const char* cases = std::getenv("FLOW_TEST_CASES");
  return cases == nullptr ? usual : std::atoi(cases);
}

void print_cases() {
  std::cout << "from case " << first_case()
            << "; FLOW_TEST_CASE=N FLOW_TEST_CASES=1 runs case N alone\n";
}

}  // namespace flow
