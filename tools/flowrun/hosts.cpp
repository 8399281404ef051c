#include "tools/flowrun/hosts.h"

#include <array>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/address.h"
#include "tools/flowrun/job_error.h"
#include "tools/flowrun/launch.h"
#include "tools/flowrun/process.h"

namespace flowrun {

namespace {

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + '\'';
}

std::string without_user(const std::string& host) {
  return host.substr(host.find('@') + 1);  // npos + 1 is 0
}

std::string node_command(const Options& options, size_t number, int port) {
  std::vector<std::string> words = {own_path(),
                                    "--nnodes",
                                    std::to_string(options.num_nodes),
                                    "--node-rank",
                                    std::to_string(number),
                                    "--nproc-per-node",
                                    std::to_string(options.hosts[number].ranks),
                                    "--master-addr",
                                    options.master_address,
                                    "--master-port",
                                    std::to_string(port),
                                    "--join-timeout",
                                    std::to_string(options.join_limit_s),
                                    "--report",
                                    options.report,
                                    "--secret-file",
                                    "-"};
  if (options.num_threads > 0) {
    words.insert(words.end(), {"--threads-per-rank", std::to_string(options.num_threads)});
  }
  words.insert(words.end(), options.command.begin(), options.command.end());
  std::string line = "cd " + quoted(std::filesystem::current_path().string()) + " && exec";
  for (const std::string& word : words)
    line += ' ' + quoted(word);
  return line;
}

}  // namespace

void check_first(const std::vector<Host>& hosts) {
  const std::string first = without_user(hosts[0].name);
  if (first == "localhost" || first == host_name()) return;
  const sockaddr_in address = resolve(first, 0);
  if (text_of(address_towards(address)) == text_of(address)) return;
  throw JobError(kUsage, "the first of --hosts must be this host; " + first + " is another host, " +
                             text_of(address));
}

std::string address_for(const std::vector<Host>& hosts) {
  return text_of(address_towards(resolve(without_user(hosts[1].name), 0)));
}

pid_t start_node(const Options& options, size_t number, int port, const std::string& secret) {
  std::vector<std::string> command = {options.rsh_agent};
  if (std::filesystem::path(options.rsh_agent).filename() == "ssh") {
    command.insert(command.end(), {"-x", "-o", "BatchMode=yes"});
  }
  command.insert(command.end(), {options.hosts[number].name, node_command(options, number, port)});
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw JobError(kRankLost, "cannot start a node: the process has too many open files");
  const std::string line = secret + '\n';
  const bool is_written =
      write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(ends[1]);
  if (!is_written)
    throw JobError(kRankLost, "cannot start a node: the secret could not be written to a pipe");
  const pid_t starter = start_process(command, {.input = ends[0]});
  close(ends[0]);
  return starter;
}

void end_starters(const std::vector<pid_t>& starters) {
  constexpr int kPatience = 200;
  for (const pid_t starter : starters) {
    bool is_over = starter <= 0;
    for (int i = 0; i < kPatience && !is_over; ++i) {
      is_over = waitpid(starter, nullptr, WNOHANG) != 0;
      if (!is_over) usleep(5000);
    }
    if (is_over) continue;
    kill(-starter, SIGKILL);
    waitpid(starter, nullptr, 0);
  }
}

}  // namespace flowrun
