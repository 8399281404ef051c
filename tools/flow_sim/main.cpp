// flow-sim simulates pipeline schedules, and compares simulations with measurements.
#include <iostream>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "tools/flow_sim/commands.h"

namespace {

// The same exit codes as flowrun's.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 64, kBadFile = 65, kFileFailure = 74 };

struct CommandLine {
  flow::sim::RunOptions run;
  std::string predicted;
  std::string measured;
  std::string file;
  std::string output;
  int64_t num_waits = 8;
};

void add_run_command(CLI::App& app, CommandLine& line) {
  CLI::App* run = app.add_subcommand("run", "simulate schedules; times are in microseconds");
  run->add_option("--stages", line.run.stages, "number of stages of the pipeline")
      ->check(CLI::PositiveNumber);
  run->add_option("--micro-batches", line.run.micro_batches, "number of micro-batches of a step")
      ->check(CLI::PositiveNumber);
  run->add_option(
      "--schedule", line.run.schedules,
      "gpipe, 1f1b, interleaved:N, zb-h1, zb-v, a file with a line of actions for each worker, "
      "or all; may be repeated");
  const auto add_list = [&](const char* name, std::vector<double>& list, const char* what) {
    run->add_option(name, list, what)->delimiter(',');
  };
  add_list("--forward", line.run.forward, "time of F, for each stage or one for all: 10,12");
  add_list("--backward", line.run.backward, "time of B, the gradients of inputs");
  add_list("--weight", line.run.weight, "time of W, the gradients of weights");
  add_list("--transfer", line.run.transfer, "time of a message from a stage to the next");
  add_list("--transfer-back", line.run.transfer_back,
           "time of a message back (default: --transfer)");
  add_list("--activation-bytes", line.run.activation_bytes,
           "bytes that a micro-batch keeps in a stage");
  run->add_option("--costs", line.run.costs, "a timeline with the times that are not given");
  run->add_flag("--predicted", line.run.uses_predicted,
                "take the predicted times of --costs, not the measured ones");
  run->add_option("--out", line.run.out,
                  "write the timeline to this file; needs exactly one schedule");
}

std::string text_of(const CLI::App& app, const CommandLine& line) {
  if (app.got_subcommand("run")) return flow::sim::run(line.run);
  if (app.got_subcommand("show")) return flow::sim::show(line.file);
  if (app.got_subcommand("merge")) return flow::sim::merge(line.file, line.output);
  return flow::sim::compare(line.predicted, line.measured, line.num_waits);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates pipeline schedules and compares timelines.");
  app.require_subcommand(1);
  CommandLine line;
  add_run_command(app, line);
  CLI::App* compare =
      app.add_subcommand("compare", "compare a predicted timeline with a measured one");
  compare->add_option("predicted", line.predicted, "timeline")->required();
  compare->add_option("measured", line.measured, "timeline of the same schedule")->required();
  compare->add_option("--waits", line.num_waits, "number of waits to list");
  CLI::App* show = app.add_subcommand("show", "summarise a timeline");
  show->add_option("file", line.file, "timeline")->required();
  CLI::App* merge = app.add_subcommand(
      "merge", "merge the events that ranks have recorded in the folder of FLOW_TIMELINE");
  merge->add_option("folder", line.file, "folder with files rank_R.events")->required();
  merge->add_option("-o,--out", line.output, "the timeline (FOLDER/timeline.json)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  try {
    std::cout << text_of(app, line);
    return kDone;
  } catch (const flow::BadFile& error) {
    std::cerr << "flow-sim: " << error.what() << '\n';
    return kBadFile;
  } catch (const flow::IoError& error) {
    std::cerr << "flow-sim: " << error.what() << '\n';
    return kFileFailure;
  } catch (const flow::Error& error) {
    std::cerr << "flow-sim: " << error.what() << '\n';
    return kFailed;
  }
}
