// Command-line options the examples share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

struct Arguments {
  std::string device = "cpu";
  int64_t steps = 0;  // 0: the example's default
  uint64_t seed = 1;
  std::vector<std::string> data;
  std::string log;   // a JSON line a step
  std::string init;  // weights to start from
  std::string save;  // weights to write

  // Reads argv; prints the help or what is wrong and ends the program as programs do.
  Arguments(int argc, char** argv, const std::string& what);
};

}  // namespace examples
