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
  bool gpt2 = false;  // the sizes of a GPT-2, --batch, --in-order, --peak, --cuda-graphs, --masters
  int64_t steps = 0;  // the default of --steps
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
  // A GPT-2, by default the one of 124M parameters.
  int64_t layers = 12, heads = 12, width = 768, length = 1024, vocabulary = 50257;
  int64_t batch = 8;         // sequences in a step
  bool in_order = false;     // take sequences in the order of the data
  bool cuda_graphs = false;  // compiled steps as CUDA graphs
  bool masters = false;      // 16-bit parameters with float32 masters
  double peak = 0;           // TFLOP/s of the device; 0: as its data sheet says

  // Parses argv. After --help or a wrong command line, prints a message and exits.
  Arguments(int argc, char** argv, const std::string& what, const Offered& offered = {});
};

}  // namespace examples
