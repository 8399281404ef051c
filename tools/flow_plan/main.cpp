// flow-plan shows and compares saved plans.
#include <iostream>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "graph/program/planning_world.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tools/flow_plan/dot.h"
#include "tools/flow_plan/page.h"
#include "tools/flow_plan/plan_diff.h"
#include "tools/flow_plan/saved_plan.h"
#include "tools/flow_plan/show.h"

namespace {

using flow::graph::SavedPlan;

enum ExitCode : int {
  kDone = 0,
  kDifferent = 1,
  kFailed = 1,
  kUsage = 64,
  kBadFile = 65,
  kFileFailure = 74
};

struct CommandLine {
  flow::tools::PlanQuestions questions;
  std::string plan;
  std::string other;
  std::string output;
  std::optional<int64_t> rank;
};

int fail(const flow::Error& error, ExitCode code) {
  std::cerr << "flow-plan: " << error.what() << '\n';
  return code;
}

void write(const std::string& path, const std::string& text) {
  flow::nn::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

int draw_page(const CommandLine& line) {
  const SavedPlan plan = flow::tools::read_plan(line.plan);
  const flow::PlanningWorld world(static_cast<int64_t>(plan.step.programs.size()));
  flow::tools::check_certificate(plan.step);
  write(line.output, flow::tools::page_of(plan.step, {.name = line.plan, .rank = line.rank}));
  return kDone;
}

int draw_dot(const CommandLine& line) {
  const SavedPlan plan = flow::tools::read_plan(line.plan);
  const flow::PlanningWorld world(static_cast<int64_t>(plan.step.programs.size()));
  std::string text;
  if (line.rank) {
    text =
        flow::tools::dot_of(plan.step.program_of(flow::tools::checked_rank(plan.step, *line.rank)));
  } else {
    text = flow::tools::dot_of(plan.step.graph);
  }
  if (line.output.empty()) {
    std::cout << text;
  } else {
    write(line.output, text);
  }
  return kDone;
}

int compare(const CommandLine& line) {
  const SavedPlan a = flow::tools::read_plan(line.plan), b = flow::tools::read_plan(line.other);
  const size_t ranks = std::max(a.step.programs.size(), b.step.programs.size());
  const flow::PlanningWorld world(static_cast<int64_t>(ranks));
  const std::string text = flow::tools::difference(a, b);
  if (text.empty()) return kDone;
  std::cout << "- " << line.plan << "\n+ " << line.other << '\n' << text;
  return kDifferent;
}

int run(const CLI::App& app, const CommandLine& line) {
  if (app.got_subcommand("page")) return draw_page(line);
  if (app.got_subcommand("dot")) return draw_dot(line);
  if (app.got_subcommand("diff")) return compare(line);
  flow::tools::show_plan(line.questions, std::cout);
  return kDone;
}

void add_questions(CLI::App& app, flow::tools::PlanQuestions& questions) {
  app.add_option("plan", questions.path, "the plan file");
  app.add_option("--rank", questions.rank, "the rank whose redistributions the summary lists");
  app.add_flag("--origin", questions.key, "print what the plan was compiled from and for");
  app.add_flag("--ir", questions.ir, "print the step as a graph");
  app.add_option("--program", questions.program, "print the program of this rank");
  app.add_flag("--certificate", questions.certificate, "print what was proved for each rank");
  app.add_flag("--check", questions.check, "prove the certificate again");
}

void add_commands(CLI::App& app, CommandLine& line) {
  CLI::App* page = app.add_subcommand("page", "draw the plan as one HTML file");
  page->add_option("plan", line.plan, "the plan file")->required();
  page->add_option("-o,--output", line.output, "the HTML file")->required();
  page->add_option("--rank", line.rank, "draw only this rank");
  CLI::App* dot = app.add_subcommand("dot", "write the step as a graph for Graphviz");
  dot->add_option("plan", line.plan, "the plan file")->required();
  dot->add_option("-o,--output", line.output, "the file (stdout)");
  dot->add_option("--program", line.rank, "write the steps and buffers of this rank's program");
  CLI::App* diff = app.add_subcommand("diff", "compare two plans; exit code 1 if they differ");
  diff->add_option("a", line.plan, "a plan file")->required();
  diff->add_option("b", line.other, "the plan file to compare it with")->required();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prints a plan that a graph saved. Without options it prints the summary.");
  app.require_subcommand(0, 1);
  CommandLine line;
  add_questions(app, line.questions);
  add_commands(app, line);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty() && line.questions.path.empty())
      throw CLI::RequiredError("plan");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  try {
    return run(app, line);
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
