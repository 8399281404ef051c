#include "tools/flowrun/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>

#include "tools/flowrun/job_error.h"

namespace flowrun {

namespace {

constexpr const char* kFooter = R"(
To use several hosts, run the same command on each host, with --node-rank 0 to N-1. Node 0 runs mpirun:
  FLOW_JOB_SECRET=... flowrun --nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr 10.0.0.1 program
Or start all nodes by ssh from one of the hosts: flowrun --hosts a:4,b:4 program

Exit codes: 0 all ranks succeeded; 1 to 63 the failing rank's own code; 64 wrong command line; 65 damaged
input file; 70 the ranks made calls that do not match; 71 time-out or stopped rank; 72 lost rank; 73 out
of memory; 74 input or output error; 75 the job still failed after --max-restarts.
flowrun forwards SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the ranks; a second SIGINT or SIGTERM ends them.
If flowrun was started with SIGHUP or SIGINT ignored (nohup), it and the ranks ignore the signal.)";

constexpr int64_t kLongest = int64_t{366} * 24 * 3600;  // seconds, as of FLOW_TIMEOUT_S

bool parse_count(std::string_view digits, int64_t& count) {
  const char* end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, count);
  return status == std::errc() && stop == end && count >= 1 && count <= kMostRanks;
}

// "threads:4" or "4".
bool parse_ranks(const std::string& text, Options& options) {
  constexpr std::string_view kThreads = "threads:";
  options.are_threads = text.starts_with(kThreads);
  return parse_count(std::string_view(text).substr(options.are_threads ? kThreads.size() : 0),
                     options.ranks);
}

// Parses "a:2,user@b:2". A name becomes a word on the command line of the remote shell, so it must
// not look like an option.
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

// The options that were given on the command line.
struct Given {
  std::string ranks;
  std::string hosts;
  int64_t ranks_of_node = 0;
  bool has_node_options = false;
};

// Completes `options`. "--" may mark the start of the program. Returns what is wrong with the
// command line, or an empty string.
std::string settle(const Given& given, Options& options) {
  if (!given.ranks.empty() && !parse_ranks(given.ranks, options)) {
    return "-n must be N or threads:N with N from 1 to " + std::to_string(kMostRanks) + "; got '" +
           given.ranks + "'";
  }
  if (!given.hosts.empty()) {
    if (given.has_node_options || !given.ranks.empty() || given.ranks_of_node > 0) {
      return "--hosts already places all ranks; remove -n, --nnodes, --nproc-per-node and the "
             "other "
             "options of single nodes";
    }
    if (!parse_hosts(given.hosts, options.hosts)) {
      return "--hosts must be HOST:RANKS,HOST:RANKS with RANKS from 1 to " +
             std::to_string(kMostRanks) + "; got '" + given.hosts + "'";
    }
    options.num_nodes = static_cast<int64_t>(options.hosts.size());
    options.ranks = options.hosts[0].ranks;
  }
  if (given.ranks_of_node > 0) {
    if (!given.ranks.empty())
      return "-n and --nproc-per-node both set the number of ranks; remove one of them";
    options.ranks = given.ranks_of_node;
  } else if (options.num_nodes > 1 && !given.ranks.empty()) {
    return "with --nnodes, use --nproc-per-node N instead of -n to set the ranks of this node";
  }
  if (options.node_rank >= options.num_nodes) return "--node-rank must be less than --nnodes";
  const bool is_marked = !options.command.empty() && options.command[0] == "--";
  if (is_marked) options.command.erase(options.command.begin());
  if (options.command.empty()) return "the command line names no program; see flowrun --help";
  if (!is_marked && options.command[0].starts_with("-")) {
    return "unknown option " + options.command[0] + "; see flowrun --help";
  }
  return {};
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app("Runs a program on several ranks.", "flowrun");
  app.footer(kFooter);
  app.prefix_command();
  Options options;
  Given given;
  std::string output = "prefix";
  std::string bind = "cores";
  app.add_option("-n,--ranks", given.ranks, "N: N processes; threads:N: N threads of one process");
  app.add_option("--output", output,
                 "prefix: begin each line with its rank; plain: leave the output unchanged")
      ->check(CLI::IsMember({"prefix", "plain"}));
  app.add_option("--output-dir", options.output_dir,
                 "write a file for each rank and stream to this folder");
  app.add_option("--threads-per-rank", options.num_threads,
                 "compute threads of each rank (cores / ranks)")
      ->check(CLI::PositiveNumber);
  app.add_option("--bind", bind,
                 "cores: bind each rank to separate cores if there are enough; none: do not bind")
      ->check(CLI::IsMember({"cores", "none"}));
  app.add_option("--timeout", options.limit_s, "end the job after this many seconds")
      ->check(CLI::Range(int64_t{1}, kLongest));
  app.add_option("--max-restarts", options.max_restarts,
                 "how often to restart the job after a lost or stopped rank or a time-out")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--report", options.report, "the file for the report of a failure")
      ->capture_default_str();
  app.add_option("--timeline", options.timeline,
                 "record what all ranks do, and write DIR/timeline.json at the end (FLOW_TIMELINE)")
      ->option_text("DIR");
  const std::vector<CLI::Option*> of_nodes = {
      app.add_option("--nnodes", options.num_nodes, "number of hosts of the job (1)")
          ->check(CLI::Range(int64_t{1}, kMostRanks)),
      app.add_option("--node-rank,--node_rank", options.node_rank, "number of this host (0)")
          ->check(CLI::NonNegativeNumber),
      app.add_option("--master-addr,--master_addr", options.master_address,
                     "the address at which node 0 listens (127.0.0.1)"),
      app.add_option("--master-port,--master_port", options.master_port,
                     "the port at which node 0 listens (29500)")
          ->check(CLI::Range(1, 65535))};
  app.add_option("--nproc-per-node,--nproc_per_node", given.ranks_of_node,
                 "number of ranks on this host (1)")
      ->check(CLI::Range(int64_t{1}, kMostRanks));
  app.add_option("--secret-file", options.secret_file,
                 "a file with the secret that only the nodes share; -: stdin (FLOW_JOB_SECRET)");
  app.add_option("--join-timeout", options.join_limit_s, "seconds to wait for all nodes (300)")
      ->check(CLI::Range(int64_t{1}, kLongest));
  app.add_option("--hosts", given.hosts,
                 "HOST:RANKS,...: start all nodes; the first must be this host");
  app.add_option("--rsh-agent", options.rsh_agent,
                 "the command that starts the nodes of --hosts (ssh)");
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
