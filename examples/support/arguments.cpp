#include "support/arguments.h"

#include <cstdlib>

#include <CLI/CLI.hpp>

namespace examples {

Arguments::Arguments(int argc, char** argv, const std::string& what) {
  CLI::App app(what);
  app.add_option("--device", device, "where to compute")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--steps", steps, "training steps")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "seed of all random numbers");
  app.add_option("--data", data, "files or folders to read");
  app.add_option("--log", log, "write a JSON line a step to this file");
  app.add_option("--init", init, "start from the weights in this safetensors file");
  app.add_option("--save", save, "write the weights to this safetensors file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 64);  // 64: wrong use, as sysexits says
  }
}

}  // namespace examples
