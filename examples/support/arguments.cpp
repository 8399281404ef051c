#include "support/arguments.h"

#include <cstdlib>
#include <tuple>

#include <CLI/CLI.hpp>

#include "core/device/cuda.h"
#include "core/error.h"

namespace examples {

Arguments::Arguments(int argc, char** argv, const std::string& what, const Offered& offered)
    : steps(offered.steps) {
  CLI::App app(what);
  app.add_option("--device", device, "where to compute")->check(CLI::IsMember({"cpu", "cuda"}));
  if (offered.random) app.add_option("--seed", seed, "seed of all random numbers");
  if (offered.training) {
    app.add_option("--steps", steps, "training steps")->check(CLI::PositiveNumber);
    if (!offered.run) app.add_option("--log", log, "write a JSON line for each step to this file");
  }
  if (offered.files) {
    app.add_option("--data", data, "files or folders to read");
    app.add_option("--init", init, "start from the weights in this safetensors file");
    app.add_option("--save", save, "write the weights to this safetensors file");
  }
  if (offered.run) {
    app.add_option(
        "--run", run,
        "folder for checkpoints, log, timelines and report; the folder of an earlier run "
        "is renamed");
    app.add_flag("--resume", resumes, "go on from the newest checkpoint in the folder of --run");
  }
  if (offered.parallel) {
    app.add_option("--pp", pipeline_parallel, "stages of the pipeline")->check(CLI::PositiveNumber);
    app.add_option("--dp", data_parallel, "ranks of a stage that share the samples")
        ->check(CLI::PositiveNumber);
    app.add_option("--tp", tensor_parallel, "ranks of a stage that share heads and widths")
        ->check(CLI::PositiveNumber);
  }
  if (offered.gpt2) {
    for (const auto& [name, value, what_it_is] :
         {std::tuple{"--layers", &layers, "blocks of attention and feed-forward"},
          {"--heads", &heads, "heads of attention"},
          {"--width", &width, "features of a token"},
          {"--length", &length, "tokens in a sequence"},
          {"--vocabulary", &vocabulary, "different tokens"},
          {"--batch", &batch, "sequences in a step"}}) {
      app.add_option(name, *value, what_it_is)->check(CLI::PositiveNumber)->capture_default_str();
    }
    app.add_flag("--in-order", in_order, "take sequences in the order of the data");
    app.add_flag("--masters", masters,
                 "keep the parameters in bfloat16 and float32 masters of them, without autocast");
    app.add_flag("--cuda-graphs", cuda_graphs, "queue the steps on a CUDA device as CUDA graphs");
    app.add_option("--peak", peak, "TFLOP/s of the device, for MFU; 0: by its data sheet")
        ->check(CLI::NonNegativeNumber);
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
