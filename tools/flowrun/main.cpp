// flowrun: starts a program as several ranks, and says how they ended.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <sched.h>
#include <unistd.h>

#include "tools/flowrun/exit_codes.h"
#include "tools/flowrun/job.h"
#include "tools/flowrun/keeper.h"
#include "tools/flowrun/options.h"
#include "tools/flowrun/session.h"
#include "tools/flowrun/verdict.h"

namespace {

using flowrun::Options;

int64_t num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// As a shell would find it; empty when there is none.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? name : std::string();
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  for (size_t colon = 0; colon != std::string::npos && !rest.empty();) {
    colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + '/' + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

std::vector<std::string> environment_of(const Options& options, const std::string& session) {
  const int64_t cores = num_cores();
  const int64_t share = std::max<int64_t>(1, cores / options.ranks);
  const int64_t threads = options.num_threads > 0 ? options.num_threads : share;
  std::vector<std::string> environment = {"FLOW_STATUS_DIR=" + session};
  const auto set_unless_given = [&](const std::string& name, const std::string& value) {
    if (options.num_threads > 0 || std::getenv(name.c_str()) == nullptr) {
      environment.push_back(name + '=' + value);
    }
  };
  set_unless_given("FLOW_NUM_THREADS", std::to_string(threads));
  set_unless_given("OMP_NUM_THREADS", std::to_string(threads));
  if (options.ranks > cores) set_unless_given("OMP_WAIT_POLICY", "passive");
  if (options.are_threads) {
    environment.push_back("FLOW_RANKS=threads:" + std::to_string(options.ranks));
  }
  return environment;
}

// Everything MPI writes goes to the session's folder. Ranks that share cores yield while MPI waits
// on its own, in its start and end; the rest of the time flow waits itself.
std::vector<std::string> launcher_command(const Options& options, const std::string& session) {
  std::vector<std::string> words = {"mpirun",          "-n",        std::to_string(options.ranks),
                                    "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  const std::vector<std::pair<std::string, std::string>> parameters = {
      {"odls_base_sigkill_timeout", "0"}, {"orte_base_help_aggregate", "1"},
      {"orte_execute_quiet", "1"},        {"btl", "vader,self,tcp"},
      {"btl_tcp_if_include", "lo"},       {"oob_tcp_if_include", "lo"},
      {"orte_tmpdir_base", session},      {"btl_vader_backing_directory", session}};
  for (const auto& [name, value] : parameters)
    words.insert(words.end(), {"--mca", name, value});
  return words;
}

int run(const Options& options) {
  const std::string program = find_program(options.command[0]);
  if (program.empty()) {
    std::cerr << "flowrun: there is no program " << options.command[0] << '\n';
    return flowrun::kUsage;
  }
  if (!options.are_threads && find_program("mpirun").empty()) {
    std::cerr << "flowrun: ranks as processes need mpirun; install openmpi-bin, or start threads "
                 "with --ranks=threads:N\n";
    return flowrun::kUsage;
  }
  const flowrun::Session session;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const flowrun::KeeperOptions keeper{
      .session = session.path(),
      .has_prefix = options.has_prefix && !options.are_threads && options.output_dir.empty(),
      .binds = options.binds && !options.are_threads,
      .output_dir = options.output_dir};
  std::vector<std::string> words;
  if (!options.are_threads) words = launcher_command(options, session.path());
  for (const std::string& word : flowrun::keeper_command(self, keeper, options.command))
    words.push_back(word);
  const flowrun::JobEnd end = flowrun::run_job(words, environment_of(options, session.path()),
                                               session.path(), options.limit_s);
  const flowrun::Verdict verdict =
      flowrun::judge(session.path(), options.are_threads ? 1 : options.ranks, end);
  if (verdict.summary.empty()) return 0;
  std::cerr << "flowrun: " << verdict.summary << "\nflowrun: exit code " << verdict.exit_code;
  if (std::ofstream(options.report) << verdict.report) std::cerr << "; see " << options.report;
  std::cerr << '\n';
  return verdict.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (flowrun::is_keeper_command(argc, argv)) return flowrun::run_keeper(argc, argv);
  int exit_code = 0;
  const auto options = flowrun::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  try {
    return run(*options);
  } catch (const std::exception& error) {
    std::cerr << "flowrun: " << error.what() << '\n';
    return flowrun::kRankLost;
  }
}
