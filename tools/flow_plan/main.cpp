// flow-plan: shows what a saved plan holds.
#include <iostream>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "nn/flow.h"
#include "tools/flow_plan/show.h"

namespace {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 64, kBadFile = 65, kFileFailure = 74 };

int fail(const flow::Error& error, ExitCode code) {
  std::cerr << "flow-plan: " << error.what() << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows a plan that a graph saved: its summary, unless something else is asked for.");
  flow::tools::PlanQuestions questions;
  app.add_option("plan", questions.path, "the file")->required();
  app.add_option("--rank", questions.rank, "whose redistributions the summary has");
  app.add_flag("--origin", questions.key, "what the plan was compiled from and for");
  app.add_flag("--ir", questions.ir, "the step as a graph");
  app.add_option("--program", questions.program, "the program of this rank");
  app.add_flag("--certificate", questions.certificate, "what was proved of each rank");
  app.add_flag("--check", questions.check, "prove it again");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  try {
    flow::tools::show_plan(questions, std::cout);
    return kDone;
  } catch (const flow::BadFile& error) {
    return fail(error, kBadFile);
  } catch (const flow::IoError& error) {
    return fail(error, kFileFailure);
  } catch (const flow::InvalidArgument& error) {
    return fail(error, kUsage);
  } catch (const flow::Error& error) {
    return fail(error, kFailed);
  }
}
