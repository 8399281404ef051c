// flowrun runs a program on several ranks and reports how they ended.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/flowrun/attempts.h"
#include "tools/flowrun/daemon.h"
#include "tools/flowrun/hosts.h"
#include "tools/flowrun/job.h"
#include "tools/flowrun/job_error.h"
#include "tools/flowrun/keeper.h"
#include "tools/flowrun/launch.h"
#include "tools/flowrun/node.h"
#include "tools/flowrun/nodes.h"
#include "tools/flowrun/options.h"
#include "tools/flowrun/report.h"
#include "tools/flowrun/secret.h"
#include "tools/flowrun/session.h"
#include "tools/flowrun/signals.h"
#include "tools/flowrun/timeline.h"
#include "tools/flowrun/verdict.h"

namespace {

using flowrun::Attempt;
using flowrun::JobError;
using flowrun::Nodes;
using flowrun::Options;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct AttemptEnd {
  Attempt attempt;
  bool is_final = false;  // a restart would not help
};

AttemptEnd run_once(const Options& options, long limit_s, Nodes* nodes) {
  const auto start = Clock::now();
  const flowrun::Session session;
  const std::string& self = flowrun::own_path();
  const flowrun::KeeperOptions keeper{
      .session = nodes == nullptr ? session.path() : "",
      .has_prefix = options.has_prefix && !options.are_threads && options.output_dir.empty(),
      .binds = options.binds && !options.are_threads,
      .output_dir = options.output_dir,
      .ignored = flowrun::ignored_signals()};
  if (nodes != nullptr) {
    nodes->begin(session.path());
    std::ofstream(session.path() + "/directory") << std::filesystem::current_path().string();
  }
  std::vector<std::string> words;
  if (!options.are_threads) words = launcher_command(options, session.path(), self, nodes);
  for (const std::string& word : flowrun::keeper_command(self, keeper, options.command))
    words.push_back(word);
  const flowrun::JobEnd end = flowrun::run_job(words, environment_of(options, session.path()),
                                               session.path(), limit_s, nodes);
  const int64_t processes = options.are_threads ? 1 : options.ranks;
  const flowrun::Verdict verdict =
      flowrun::judge(session.path(), nodes == nullptr ? processes : nodes->num_ranks(), end);
  const bool is_lost =
      verdict.exit_code == flowrun::kRankLost || verdict.exit_code == flowrun::kStoppedOrTimeout;
  return {.attempt = {.verdict = verdict, .seconds = seconds_since(start)},
          .is_final = !is_lost || end.has_timed_out || end.was_signalled};
}

int run_attempts(const Options& options, Nodes* nodes, const Nodes::StartNode& start_node) {
  const auto start = Clock::now();
  flowrun::remove_report(options.report);
  std::vector<Attempt> attempts;
  std::string obstacle;
  for (;;) {
    const auto elapsed = static_cast<long>(seconds_since(start));
    const long limit_s = options.limit_s == 0 ? 0 : std::max(1L, options.limit_s - elapsed);
    const AttemptEnd end = run_once(options, limit_s, nodes);
    attempts.push_back(end.attempt);
    const auto num_restarts = static_cast<int64_t>(attempts.size()) - 1;
    if (end.is_final || num_restarts == options.max_restarts) break;
    std::cerr << "flowrun: " << end.attempt.verdict.summary << '\n';
    if (nodes != nullptr) obstacle = nodes->rejoin(start_node);
    if (!obstacle.empty()) break;
    flowrun::shorten(attempts.back());
    std::cerr << "flowrun: restart " << num_restarts + 1 << " of " << options.max_restarts << '\n';
  }
  flowrun::Verdict& last = attempts.back().verdict;
  if (!obstacle.empty()) last.summary += "; the job was not restarted because " + obstacle;
  const bool is_exhausted =
      options.max_restarts > 0 &&
      (!obstacle.empty() || static_cast<int64_t>(attempts.size()) == options.max_restarts + 1) &&
      (last.exit_code == flowrun::kRankLost || last.exit_code == flowrun::kStoppedOrTimeout);
  const int exit_code = is_exhausted ? flowrun::kRestartsExhausted : last.exit_code;
  if (nodes != nullptr) nodes->tell_verdict(exit_code, last.summary);
  if (last.summary.empty() && attempts.size() == 1) return 0;
  const auto report = complete_report(
      attempts, nodes == nullptr ? nlohmann::json() : nodes->describe(), exit_code, obstacle);
  const std::string failure = flowrun::write_report(options.report, report);
  if (!last.summary.empty()) {
    std::cerr << "flowrun: " << last.summary << "\nflowrun: exit code " << exit_code << "; "
              << flowrun::report_note(options.report, failure) << '\n';
  } else if (!failure.empty()) {
    std::cerr << "flowrun: " << failure << '\n';
  }
  return exit_code;
}

int run_nodes(Options options) {
  const bool starts_nodes = !options.hosts.empty();
  std::string secret = flowrun::read_secret(options.secret_file);
  if (options.node_rank > 0) return flowrun::run_node(options, secret);
  if (starts_nodes) {
    if (flowrun::find_program(options.rsh_agent).empty()) {
      throw JobError(flowrun::kUsage, "--hosts needs " + options.rsh_agent +
                                          "; install it, or start flowrun on each host by hand "
                                          "with --nnodes and --node-rank");
    }
    options.master_address = flowrun::address_for(options.hosts);
    options.master_port = 0;  // any free port
    secret = flowrun::make_secret();
  }
  Nodes nodes(options, secret);
  std::vector<pid_t> starters(options.hosts.size(), -1);  // the first entry is this node
  const auto start_node = [&](size_t number) {
    if (starters[number] > 0) flowrun::end_starters({starters[number]});
    starters[number] = flowrun::start_node(options, number, nodes.port(), secret);
    return starters[number];
  };
  for (size_t number = 1; number < options.hosts.size(); ++number)
    start_node(number);
  int exit_code = 0;
  try {
    nodes.join(starters);
    exit_code =
        run_attempts(options, &nodes, starts_nodes ? Nodes::StartNode(start_node) : nullptr);
  } catch (...) {
    flowrun::end_starters(starters);
    throw;
  }
  flowrun::end_starters(starters);
  return exit_code;
}

int run(const Options& options) {
  if (flowrun::find_program(options.command[0]).empty()) {
    throw JobError(flowrun::kUsage, flowrun::why_not_found(options.command[0]));
  }
  if (!options.are_threads && flowrun::find_program("mpirun").empty()) {
    throw JobError(flowrun::kUsage,
                   "process ranks need mpirun; install openmpi-bin, or use thread ranks: "
                   "--ranks=threads:N");
  }
  if (!options.hosts.empty()) flowrun::check_first(options.hosts);
  const std::string timeline = flowrun::start_timeline(options);
  if (options.num_nodes == 1) flowrun::hide_secret();
  const int exit_code =
      options.num_nodes > 1 ? run_nodes(options) : run_attempts(options, nullptr, {});
  if (options.node_rank == 0) flowrun::end_timeline(timeline);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a report that may not grow must not end flowrun
  if (flowrun::is_agent_command(argc, argv)) return flowrun::run_agent(argc, argv);
  if (flowrun::is_keeper_command(argc, argv)) return flowrun::run_keeper(argc, argv);
  int exit_code = 0;
  const auto options = flowrun::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  try {
    return run(*options);
  } catch (const JobError& error) {
    std::cerr << "flowrun: " << error.what() << '\n';
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "flowrun: " << error.what() << '\n';
    return flowrun::kRankLost;
  }
}
