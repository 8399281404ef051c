// The command-line options that the examples share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

// The options that only some programs have. All programs have --device.
struct Offered {
  bool random = true;     // --seed
  bool training = true;   // --steps, --log
  bool files = true;      // --data, --init, --save
  bool run = false;       // --run, --resume in place of --log
  bool parallel = false;  // --pp, --dp, --tp
  int64_t steps = 0;      // the default of --steps
};

// For programs that do not train.
inline constexpr Offered kSeedOnly{.training = false, .files = false};

struct Arguments {
  std::string device = "cpu";
  int64_t steps = 0;  // 0: the example's default
  uint64_t seed = 1;
  std::vector<std::string> data;
  std::string log;          // file for a JSON line per step
  std::string init;         // file with the initial weights
  std::string save;         // file for the final weights
  std::string run = "run";  // folder for what a training writes
  bool resumes = false;     // go on with what is in that folder
  // Stages, and the ranks of each.
  int64_t pipeline_parallel = 1, data_parallel = 1, tensor_parallel = 1;

  // Parses argv. After --help or a wrong command line, prints a message and exits.
  Arguments(int argc, char** argv, const std::string& what, const Offered& offered = {});
};

}  // namespace examples
