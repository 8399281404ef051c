#include "tools/flowrun/options.h"

#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>

#include "tools/flowrun/exit_codes.h"

namespace flowrun {

namespace {

constexpr const char* kFooter = R"(
Exit codes: 0 all ranks ended well; 1 to 63 the failing rank's own; 64 wrong command line; 70 ranks
disagree; 71 time-out or stopped rank; 72 a rank is lost; 73 out of memory; 74 input or output.
SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks; a second SIGINT or SIGTERM ends them.)";

// "threads:4" or "4".
bool parse_ranks(const std::string& text, Options& options) {
  constexpr std::string_view kThreads = "threads:";
  options.are_threads = text.starts_with(kThreads);
  const std::string_view digits =
      std::string_view(text).substr(options.are_threads ? kThreads.size() : 0);
  const char* end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, options.ranks);
  return status == std::errc() && stop == end && options.ranks >= 1;
}

int complain(const std::string& what) {
  std::cerr << "flowrun: " << what << '\n';
  return kUsage;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app("Starts a program as several ranks.", "flowrun");
  app.footer(kFooter);
  app.prefix_command();
  Options options;
  std::string ranks = "1";
  std::string output = "prefix";
  std::string bind = "cores";
  std::string hosts;
  app.add_option("-n,--ranks", ranks, "N: N processes; threads:N: N threads of one process");
  app.add_option("--output", output, "prefix: each line names its rank; plain: as it comes")
      ->check(CLI::IsMember({"prefix", "plain"}));
  app.add_option("--output-dir", options.output_dir, "a file per rank and stream in this folder");
  app.add_option("--threads-per-rank", options.num_threads, "compute threads (cores / ranks)")
      ->check(CLI::PositiveNumber);
  app.add_option("--bind", bind, "cores: ranks get cores of their own while there are enough; none")
      ->check(CLI::IsMember({"cores", "none"}));
  app.add_option("--timeout", options.limit_s, "seconds after which the job is ended")
      ->check(CLI::PositiveNumber);
  app.add_option("--report", options.report, "where a failure is reported")->capture_default_str();
  app.add_option("--hosts", hosts, "not supported yet");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return std::nullopt;
  }
  options.command = app.remaining();
  options.has_prefix = output == "prefix";
  options.binds = bind == "cores";
  if (!hosts.empty()) {
    exit_code = complain(
        "--hosts: ranks on several hosts are not supported yet; start all ranks on this host with "
        "-n, or use mpirun --host, under which programs run as well");
  } else if (!parse_ranks(ranks, options)) {
    exit_code = complain("-n must be N or threads:N with N of at least 1; got '" + ranks + "'");
  } else if (options.command.empty()) {
    exit_code = complain("no program is given; see flowrun --help");
  } else if (options.command[0].starts_with("-")) {
    exit_code = complain("there is no option " + options.command[0] + "; see flowrun --help");
  } else {
    return options;
  }
  return std::nullopt;
}

}  // namespace flowrun
