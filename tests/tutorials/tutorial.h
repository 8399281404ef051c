// The frame of these programs: each function is one tutorial, and main() runs them by name.
#pragma once

#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/first_hour/expect.h"

// Runs the tutorials in order; one that throws ends the program, after its name was printed.
inline int run_tutorials(
    const std::vector<std::pair<std::string, std::function<void()>>>& tutorials) {
  for (const auto& [name, tutorial] : tutorials) {
    std::cout << name << std::endl;
    flow::manual_seed(1);
    tutorial();
  }
  return 0;
}
