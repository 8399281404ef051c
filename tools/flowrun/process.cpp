#include "tools/flowrun/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/job_error.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

// Changes the host name for this process and its children only.
bool rename_host(const std::string& name) {
  return unshare(CLONE_NEWUTS) == 0 && sethostname(name.data(), name.size()) == 0;
}

[[noreturn]] void run_child(const std::vector<std::string>& command,
                            const ProcessOptions& options) {
  setpgid(0, 0);  // signals of the terminal reach only flowrun, which forwards them
  prctl(PR_SET_PDEATHSIG, options.signal_of_parent);
  signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.input >= 0) dup2(options.input, STDIN_FILENO);
  if (isatty(STDIN_FILENO) !=
      0) {  // a background group that reads from a terminal would be stopped
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
  }
  if (!options.host_name.empty() && !rename_host(options.host_name)) _exit(kUsage);
  for (const std::string& entry : options.environment) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  std::vector<char*> words;
  for (const std::string& word : command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const std::string text =
      std::string("flowrun: cannot run ") + words[0] + ": " + std::strerror(errno) + '\n';
  static_cast<void>(write(STDERR_FILENO, text.data(), text.size()) == 0);
  _exit(kUsage);
}

}  // namespace

pid_t start_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) run_child(command, options);
  return child;
}

int signal_ranks(const std::string& session, int number) {
  int left = 0;
  const auto over = read_records(session, "exit");
  for (const auto& [rank, pid] : read_records(session, "pid")) {
    const auto is_same = [&, own = rank](const auto& record) { return record.first == own; };
    const auto process = static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
    const bool is_over = std::any_of(over.begin(), over.end(), is_same);
    if (!is_over && process > 0 && kill(process, number) == 0) ++left;
  }
  return left;
}

std::vector<pid_t> find_children() {
  std::vector<pid_t> children;
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (pid_t child = 0; list >> child;)
    children.push_back(child);
  return children;
}

void kill_children(const std::vector<pid_t>& spared) {
  constexpr int kMostGenerations = 1000;  // a program that forks faster than this is not stopped
  for (int i = 0; i < kMostGenerations; ++i) {
    std::vector<pid_t> children = find_children();
    std::erase_if(children, [&](pid_t child) {
      return std::find(spared.begin(), spared.end(), child) != spared.end();
    });
    // A child that changed its user may be out of reach; nobody must wait for it.
    std::erase_if(children, [](pid_t child) { return kill(child, SIGKILL) != 0; });
    if (children.empty()) return;
    for (const pid_t child : children)
      waitpid(child, nullptr, 0);
  }
}

bool may_rename_host() {
  const pid_t child = fork();
  if (child == 0) _exit(rename_host("flowrun") ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace flowrun
