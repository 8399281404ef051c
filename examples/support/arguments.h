// Command-line options the examples share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

// Options that only some programs have, in addition to --device.
struct Offered {
  bool random = true;    // --seed
  bool training = true;  // --steps, --log
  bool files = true;     // --data, --init, --save
  bool checkpoints = false;
  bool parallel = false;
};

// Of programs that only compute something.
inline constexpr Offered kSeedOnly{.training = false, .files = false};

struct Arguments {
  std::string device = "cpu";
  int64_t steps = 0;  // 0: the example's default
  uint64_t seed = 1;
  std::vector<std::string> data;
  std::string log;   // a JSON line a step
  std::string init;  // weights to start from
  std::string save;  // weights to write
  // Checkpoints are written to this folder, and resumed from.
  std::string checkpoints;
  int64_t data_parallel = 1, tensor_parallel = 1;  // ranks

  // Reads argv; prints the help or what is wrong and ends the program as programs do.
  Arguments(int argc, char** argv, const std::string& what, const Offered& offered = {});
};

}  // namespace examples
