#include "tools/flowrun/job.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/exit_codes.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a launcher gets to end by itself after the first failure.
constexpr milliseconds kAfterFailure(1500);

[[noreturn]] void run_child(const std::vector<std::string>& command,
                            const std::vector<std::string>& environment) {
  setpgid(0, 0);  // signals of the terminal reach flowrun only, which passes them on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (isatty(STDIN_FILENO) != 0) {  // a background group that reads from a terminal is stopped
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
  }
  for (const std::string& entry : environment) {
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

class Job {
 public:
  Job(const std::string& session, long limit_s) : session_(session), limit_s_(limit_s) {}

  JobEnd run(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
      sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const int events = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    launcher_ = fork();
    if (launcher_ < 0) throw std::runtime_error("cannot start a process");
    if (launcher_ == 0) run_child(command, environment);
    const auto start = Clock::now();
    Clock::time_point failed_at{};
    while (!has_ended()) {
      pollfd file{events, POLLIN, 0};
      poll(&file, 1, 50);
      signalfd_siginfo event;
      while (read(events, &event, sizeof(event)) == sizeof(event))
        handle(static_cast<int>(event.ssi_signo));
      const auto now = Clock::now();
      if (failed_at == Clock::time_point{} && has_failure()) failed_at = now;
      if (failed_at != Clock::time_point{} && now > failed_at + kAfterFailure) end();
      if (limit_s_ > 0 && now > start + std::chrono::seconds(limit_s_)) {
        end_.has_timed_out = true;
        end();
      }
    }
    // Ranks die with their keepers, and those with the launcher; this makes sure that all have.
    for (int i = 0; i < 200 && kill_ranks(SIGKILL) > 0; ++i)
      usleep(5000);
    return end_;
  }

 private:
  bool has_ended() {
    if (launcher_ > 0 && waitpid(launcher_, &end_.launcher_status, WNOHANG) == launcher_) {
      launcher_ = -1;
    }
    return launcher_ < 0;
  }

  bool has_failure() const {
    if (!read_records(session_, "failed").empty()) return true;
    for (const auto& [rank, content] : read_records(session_, "exit")) {
      if (content.find("\"good\":false") != std::string::npos) return true;
    }
    return false;
  }

  void handle(int number) {
    if (number == SIGCHLD) return;
    const bool asks_to_end = number == SIGINT || number == SIGTERM;
    if (asks_to_end && was_asked_) return end();
    was_asked_ |= asks_to_end;
    if (kill_ranks(number) == 0 && asks_to_end) end();  // no rank has started
  }

  // The number of those that are left.
  int kill_ranks(int number) const {
    int left = 0;
    const auto over = read_records(session_, "exit");
    for (const auto& [rank, pid] : read_records(session_, "pid")) {
      bool is_over = false;
      for (const auto& [ended, content] : over)
        is_over |= ended == rank;
      const auto process = static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
      if (!is_over && kill(process, number) == 0) ++left;
    }
    return left;
  }

  // The launcher ends its ranks when it is asked to; the ranks of one that does not are killed.
  void end() {
    if (launcher_ < 0) return;
    kill(launcher_, SIGTERM);
    for (int i = 0; i < 100 && !has_ended(); ++i)
      usleep(10000);
    if (launcher_ < 0) return;
    kill_ranks(SIGKILL);
    kill(-launcher_, SIGKILL);
    kill(launcher_, SIGKILL);
    while (!has_ended())
      usleep(1000);
  }

  const std::string& session_;
  long limit_s_;
  pid_t launcher_ = -1;
  bool was_asked_ = false;
  JobEnd end_;
};

}  // namespace

JobEnd run_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& session, long limit_s) {
  return Job(session, limit_s).run(command, environment);
}

}  // namespace flowrun
