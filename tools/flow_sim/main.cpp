// flow-sim: what pipeline schedules will do, and beside it what they did.
#include <iostream>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "tools/flow_sim/commands.h"

namespace {

// As flowrun's.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 64, kBadFile = 65, kFileFailure = 74 };

struct CommandLine {
  flow::sim::RunOptions run;
  std::string predicted;
  std::string measured;
  std::string file;
  int64_t num_waits = 8;
};

void add_run_command(CLI::App& app, CommandLine& line) {
  CLI::App* run = app.add_subcommand("run", "simulate schedules; times are in microseconds");
  run->add_option("--stages", line.run.stages, "of the pipeline")->check(CLI::PositiveNumber);
  run->add_option("--micro-batches", line.run.micro_batches, "of a step")
      ->check(CLI::PositiveNumber);
  run->add_option(
      "--schedule", line.run.schedules,
      "gpipe, 1f1b, interleaved:N, zb-h1, zb-v, a file with a line of actions a worker, "
      "or all; may be repeated");
  const auto add_list = [&](const char* name, std::vector<double>& list, const char* what) {
    run->add_option(name, list, what)->delimiter(',');
  };
  add_list("--forward", line.run.forward, "time of F, by stage or one for all: 10,12");
  add_list("--backward", line.run.backward, "time of B, the gradients of inputs");
  add_list("--weight", line.run.weight, "time of W, the gradients of weights");
  add_list("--transfer", line.run.transfer, "time from a stage to the next");
  add_list("--transfer-back", line.run.transfer_back, "time back; else as --transfer");
  add_list("--activation-bytes", line.run.activation_bytes, "that a micro-batch keeps in a stage");
  run->add_option("--costs", line.run.costs, "a timeline to take times from that are not given");
  run->add_flag("--predicted", line.run.uses_predicted,
                "of --costs, take what the graph was predicted to cost");
  run->add_option("--out", line.run.out, "write the timeline of the one schedule");
}

std::string text_of(const CLI::App& app, const CommandLine& line) {
  if (app.got_subcommand("run")) return flow::sim::run(line.run);
  if (app.got_subcommand("show")) return flow::sim::show(line.file);
  return flow::sim::compare(line.predicted, line.measured, line.num_waits);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates pipeline schedules and compares timelines.");
  app.require_subcommand(1);
  CommandLine line;
  add_run_command(app, line);
  CLI::App* compare = app.add_subcommand("compare", "a predicted timeline beside a measured one");
  compare->add_option("predicted", line.predicted, "timeline")->required();
  compare->add_option("measured", line.measured, "timeline of the same schedule")->required();
  compare->add_option("--waits", line.num_waits, "how many differing waits to list");
  CLI::App* show = app.add_subcommand("show", "what a timeline amounts to");
  show->add_option("file", line.file, "timeline")->required();
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
