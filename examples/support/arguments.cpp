#include "support/arguments.h"

#include <cstdlib>

#include <CLI/CLI.hpp>

#include "core/device/cuda.h"
#include "core/error.h"

namespace examples {

Arguments::Arguments(int argc, char** argv, const std::string& what, const Offered& offered) {
  CLI::App app(what);
  app.add_option("--device", device, "where to compute")->check(CLI::IsMember({"cpu", "cuda"}));
  if (offered.random) app.add_option("--seed", seed, "seed of all random numbers");
  if (offered.training) {
    app.add_option("--steps", steps, "training steps")->check(CLI::PositiveNumber);
    app.add_option("--log", log, "write a JSON line for each step to this file");
  }
  if (offered.files) {
    app.add_option("--data", data, "files or folders to read");
    app.add_option("--init", init, "start from the weights in this safetensors file");
    app.add_option("--save", save, "write the weights to this safetensors file");
  }
  if (offered.checkpoints) {
    app.add_option("--checkpoints", checkpoints,
                   "write checkpoints to this folder, and resume from its newest");
  }
  if (offered.parallel) {
    app.add_option("--dp", data_parallel, "ranks that share the samples")
        ->check(CLI::PositiveNumber);
    app.add_option("--tp", tensor_parallel, "ranks that share heads and widths")
        ->check(CLI::PositiveNumber);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 64);  // 64: wrong use, as sysexits says
  }
  if (device == "cuda" && !flow::cuda::is_available()) {
    throw flow::Unsupported("[" + app.get_description() + "] --device cuda: " +
                            (flow::cuda::is_built() ? "this machine has no device that can be used"
                                                    : "this build has no CUDA") +
                            "; leave it out, or give cpu");
  }
}

}  // namespace examples
