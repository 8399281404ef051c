// flow-conform runs specs from files through the public API and writes the results. It never
// compares.
#include <cstdlib>
#include <iostream>

#include <CLI/CLI.hpp>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "tools/flow_conform/box_command.h"
#include "tools/flow_conform/optim_command.h"
#include "tools/flow_conform/train_command.h"
#include "tools/flow_conform/train_job.h"

namespace {

using namespace flow::conform;  // NOLINT(google-build-using-namespace): the program's own

struct CommandLine {
  RunOptions run;
  OpOptions op;
  OptimOptions optim;
  BoxOptions box;
  TrainOptions train;
  std::string dtype = "f32";
  int num_threads = 0;
};

void add_op_command(CLI::App& app, CommandLine& line) {
  CLI::App* op = app.add_subcommand("op", "run the cases of an op spec");
  op->add_option("cases", line.op.cases, "the spec (JSON)")->required();
  op->add_option("dir", line.op.folder, "the folder of the inputs")->required();
  op->add_option("out", line.op.out, "the results (safetensors)")->required();
  op->add_option("--only", line.op.only, "run only the case of this id");
  op->add_option("--layout", line.op.layout,
                 "run on global tensors: random, or an SBP for each input (S0,B,P; axes as S0/B)");
  op->add_flag("--graph", line.op.in_graph, "run as a compiled graph");
}

void add_optim_command(CLI::App& app, CommandLine& line, const char* name, const char* what) {
  CLI::App* optim = app.add_subcommand(name, what);
  optim->add_option("spec", line.optim.spec, "the spec (JSON)")->required();
  optim->add_option("out", line.optim.out, "results")->required();
}

void add_box_command(CLI::App& app, CommandLine& line) {
  CLI::App* box = app.add_subcommand("box", "redistribute the shards of a table");
  box->add_option("table", line.box.table, "the spec (JSON)")->required();
  box->add_option("in", line.box.in, "shards (safetensors)")->required();
  box->add_option("out", line.box.out, "results (safetensors)")->required();
}

void add_train_command(CLI::App& app, CommandLine& line) {
  CLI::App* train = app.add_subcommand("train", "train a model");
  train->add_option("run", line.train.spec, "the spec (JSON)")->required();
  train->add_option("out", line.train.folder, "folder of the results")->required();
  train->add_option(
      "--layout", line.train.layout,
      "on the ranks of the job: dpN, tpN, ppN, zero1 to zero3, recompute, amp joined by +, or "
      "ddpN; or, without a launcher, through job functions: jobN, mirroredN");
  train->add_option("--schedule", line.train.schedule,
                    "the schedule of a pipeline: gpipe, 1f1b, interleaved, zb-h1, zb-v or a file");
  train->add_option("--micro-batches", line.train.micro_batches, "the number of micro-batches");
  train->add_option("--steps", line.train.steps, "the number of steps (default: that of the spec)");
  train->add_flag("--graph", line.train.in_graph, "run as a compiled graph");
  train->add_option(
      "--timeline", line.train.timeline,
      "measure three steps of a graph and write a timeline for flow-sim and Perfetto");
}

// flow reads the variable when it starts its threads. Thread ranks have already started theirs.
void set_num_threads(int num_threads) {
  if (num_threads < 1 || std::getenv("FLOW_RANKS") != nullptr) return;
  setenv("FLOW_NUM_THREADS", std::to_string(num_threads).c_str(), 1);
}

ExitCode run(const CLI::App& app, CommandLine& line) {
  line.run.set_dtype(line.dtype);
  line.op.run = line.optim.run = line.box.run = line.train.run = line.run;
  if (app.got_subcommand("op")) return run_ops(line.op);
  if (app.got_subcommand("optim")) return run_optimizers(line.optim);
  if (app.got_subcommand("box")) return run_boxing(line.box);
  if (app.got_subcommand("train")) return run_training(line.train);
  return run_schedulers(line.optim);
}

// The ranks of a job function were threads that have ended, and this thread is not a rank.
bool has_own_ranks(const CommandLine& line) {
  return job_layout(line.train.layout).has_value();
}

// A nonzero exit code of a rank ends the job, so only rank 0 returns one, after it wrote its files.
int exit_status(const CommandLine& line, ExitCode code) {
  if (has_own_ranks(line) || flow::env::world_size() == 1) return code;
  flow::env::barrier();
  return flow::env::rank() == 0 ? code : kDone;
}

// With several ranks the error leaves main, so that the job ends with the exit code of the error.
int file_failure(const flow::IoError& error, ExitCode code) {
  if (flow::env::world_size() > 1) throw;
  std::cerr << "flow-conform: " << error.what() << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs ops, optimizers and trainings from files through flow, and writes the results.");
  app.fallthrough();
  app.require_subcommand(1);
  CommandLine line;
  app.add_option("--device", line.run.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--dtype", line.dtype, "f32 or f64")->check(CLI::IsMember({"f32", "f64"}));
  app.add_option("--threads", line.num_threads, "compute threads of each rank")
      ->check(CLI::PositiveNumber);
  add_op_command(app, line);
  add_box_command(app, line);
  add_train_command(app, line);
  add_optim_command(app, line, "optim", "run optimizer steps; results are safetensors");
  add_optim_command(app, line, "scheduler", "compute learning rates of 50 steps; results are JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadSpec;
  }
  set_num_threads(line.num_threads);
  try {
    const ExitCode code = run(app, line);
    return exit_status(line, code);
  } catch (const BadSpec& error) {
    std::cerr << "flow-conform: " << error.what() << '\n';
  } catch (const flow::BadFile& error) {
    return file_failure(error, kBadFile);
  } catch (const flow::IoError& error) {
    return file_failure(error, kFileFailure);
  }
  return kBadSpec;
}
