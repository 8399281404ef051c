#include "tools/flowrun/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>

#include "tools/flowrun/exit_codes.h"

namespace flowrun {

namespace {

constexpr const char* kFooter = R"(
Several hosts, started by hand: the same command on each, with --node-rank 0 to N-1; node 0 runs mpirun.
  FLOW_JOB_SECRET=... flowrun --nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr 10.0.0.1 program
Or from one of them, by ssh: flowrun --hosts a:4,b:4 program

Exit codes: 0 all ranks ended well; 1 to 63 the failing rank's own; 64 wrong command line; 65 damaged
input file; 70 ranks disagree; 71 time-out or stopped rank; 72 a rank is lost; 73 out of memory; 74
input or output; 75 it still failed after --max-restarts.
SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks; a second SIGINT or SIGTERM ends them.)";

bool parse_count(std::string_view digits, int64_t& count) {
  const char* end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, count);
  return status == std::errc() && stop == end && count >= 1;
}

// "threads:4" or "4".
bool parse_ranks(const std::string& text, Options& options) {
  constexpr std::string_view kThreads = "threads:";
  options.are_threads = text.starts_with(kThreads);
  return parse_count(std::string_view(text).substr(options.are_threads ? kThreads.size() : 0),
                     options.ranks);
}

// "a:2,user@b:2". A name is handed to the remote shell as a word, which it must not take for an
// option.
bool parse_hosts(const std::string& text, std::vector<Host>& hosts) {
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    const size_t colon = item.find(':');
    Host host{.name = item.substr(0, colon)};
    const bool is_name = !host.name.empty() && host.name[0] != '-' &&
                         std::all_of(host.name.begin(), host.name.end(), [](char c) {
                           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ||
                                  c == '-' || c == '_' || c == '@';
                         });
    if (!is_name) return false;
    if (colon != std::string::npos && !parse_count(item.substr(colon + 1), host.ranks)) {
      return false;
    }
    hosts.push_back(host);
    at = comma + 1;
  }
  return true;
}

int complain(const std::string& what) {
  std::cerr << "flowrun: " << what << '\n';
  return kUsage;
}

// What of the command line was given.
struct Given {
  std::string ranks;
  std::string hosts;
  int64_t ranks_of_node = 0;
  bool has_node_options = false;
};

// What is wrong with it; empty where nothing is.
std::string settle(const Given& given, Options& options) {
  if (!given.ranks.empty() && !parse_ranks(given.ranks, options)) {
    return "-n must be N or threads:N with N of at least 1; got '" + given.ranks + "'";
  }
  if (!given.hosts.empty()) {
    if (given.has_node_options || !given.ranks.empty() || given.ranks_of_node > 0) {
      return "--hosts says where all ranks are; leave out -n, --nnodes and what goes with it";
    }
    if (!parse_hosts(given.hosts, options.hosts)) {
      return "--hosts must be HOST:RANKS,HOST:RANKS; got '" + given.hosts + "'";
    }
    options.num_nodes = static_cast<int64_t>(options.hosts.size());
    options.ranks = options.hosts[0].ranks;
  }
  if (given.ranks_of_node > 0) {
    if (!given.ranks.empty()) return "-n and --nproc-per-node say the same; leave one out";
    options.ranks = given.ranks_of_node;
  } else if (options.num_nodes > 1 && !given.ranks.empty()) {
    return "with --nnodes, --nproc-per-node N says how many ranks this node has, not -n";
  }
  if (options.node_rank >= options.num_nodes) return "--node-rank must be below --nnodes";
  if (options.command.empty()) return "no program is given; see flowrun --help";
  if (options.command[0].starts_with("-")) {
    return "there is no option " + options.command[0] + "; see flowrun --help";
  }
  return {};
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app("Starts a program as several ranks.", "flowrun");
  app.footer(kFooter);
  app.prefix_command();
  Options options;
  Given given;
  std::string output = "prefix";
  std::string bind = "cores";
  app.add_option("-n,--ranks", given.ranks, "N: N processes; threads:N: N threads of one process");
  app.add_option("--output", output, "prefix: each line names its rank; plain: as it comes")
      ->check(CLI::IsMember({"prefix", "plain"}));
  app.add_option("--output-dir", options.output_dir, "a file per rank and stream in this folder");
  app.add_option("--threads-per-rank", options.num_threads, "compute threads (cores / ranks)")
      ->check(CLI::PositiveNumber);
  app.add_option("--bind", bind, "cores: ranks get cores of their own while there are enough; none")
      ->check(CLI::IsMember({"cores", "none"}));
  app.add_option("--timeout", options.limit_s, "seconds after which the job is ended")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-restarts", options.max_restarts,
                 "start again so often after a lost or stopped rank or a time-out")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--report", options.report, "where a failure is reported")->capture_default_str();
  const std::vector<CLI::Option*> of_nodes = {
      app.add_option("--nnodes", options.num_nodes, "hosts of the job (1)")
          ->check(CLI::PositiveNumber),
      app.add_option("--node-rank,--node_rank", options.node_rank, "which of them this is (0)")
          ->check(CLI::NonNegativeNumber),
      app.add_option("--master-addr,--master_addr", options.master_address,
                     "an address of node 0, which listens there (127.0.0.1)"),
      app.add_option("--master-port,--master_port", options.master_port, "(29500)")
          ->check(CLI::Range(1, 65535))};
  app.add_option("--nproc-per-node,--nproc_per_node", given.ranks_of_node, "ranks on this host (1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--secret-file", options.secret_file,
                 "what all nodes know and nobody else; -: stdin (FLOW_JOB_SECRET)");
  app.add_option("--join-timeout", options.join_limit_s, "seconds to wait for all nodes (300)")
      ->check(CLI::PositiveNumber);
  app.add_option("--hosts", given.hosts, "HOST:RANKS,...: start all nodes; the first is this host");
  app.add_option("--rsh-agent", options.rsh_agent, "starts nodes of --hosts (ssh)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return std::nullopt;
  }
  options.command = app.remaining();
  options.has_prefix = output == "prefix";
  options.binds = bind == "cores";
  given.has_node_options = std::any_of(of_nodes.begin(), of_nodes.end(),
                                       [](const CLI::Option* o) { return !o->empty(); });
  if (const std::string wrong = settle(given, options); !wrong.empty()) {
    exit_code = complain(wrong);
    return std::nullopt;
  }
  return options;
}

}  // namespace flowrun
