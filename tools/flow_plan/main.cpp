// flow-plan prints the content of a saved plan.
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
  CLI::App app("Prints a plan that a graph saved. Without options it prints the summary.");
  flow::tools::PlanQuestions questions;
  app.add_option("plan", questions.path, "the plan file")->required();
  app.add_option("--rank", questions.rank, "the rank whose redistributions the summary lists");
  app.add_flag("--origin", questions.key, "print what the plan was compiled from and for");
  app.add_flag("--ir", questions.ir, "print the step as a graph");
  app.add_option("--program", questions.program, "print the program of this rank");
  app.add_flag("--certificate", questions.certificate, "print what was proved for each rank");
  app.add_flag("--check", questions.check, "prove the certificate again");
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
