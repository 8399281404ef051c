#include "tools/flowrun/job.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/nodes.h"
#include "tools/flowrun/process.h"
#include "tools/flowrun/session.h"
#include "tools/flowrun/signals.h"

namespace flowrun {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The time that the launcher has to end by itself after the first failure.
constexpr milliseconds kAfterFailure(1500);
// The time that keepers have to report after the launcher has ended without an error.
constexpr milliseconds kReportLimit(30'000);

class Job {
 public:
  Job(const std::string& session, long limit_s, Nodes* nodes)
      : session_(session), limit_s_(limit_s), nodes_(nodes) {}

  ~Job() {
    if (events_ >= 0) close(events_);
  }

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  JobEnd run(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
    sigset_t signals = forwarded_signals();
    sigaddset(&signals, SIGCHLD);
    events_ = receive_signals(signals);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::vector<pid_t> older_children = find_children();
    launcher_ = start_process(command, {.environment = environment});
    const auto start = Clock::now();
    Clock::time_point failed_at{};
    while (!has_ended()) {
      pollfd file{events_, POLLIN, 0};
      poll(&file, 1, 50);
      signalfd_siginfo event;
      while (read(events_, &event, sizeof(event)) == sizeof(event))
        handle(static_cast<int>(event.ssi_signo));
      if (nodes_ != nullptr) nodes_->step();
      const auto now = Clock::now();
      if (failed_at == Clock::time_point{} && has_failure(session_)) failed_at = now;
      if (failed_at != Clock::time_point{} && now > failed_at + kAfterFailure) end();
      if (limit_s_ > 0 && now > start + std::chrono::seconds(limit_s_)) {
        end_.has_timed_out = true;
        end();
      }
    }
    if (has_launcher_succeeded()) wait_for_reports();
    // Ranks die with their keepers, and keepers with the launcher. This loop makes sure of it.
    for (int i = 0; i < 200 && signal_ranks(session_, SIGKILL) > 0; ++i)
      usleep(5000);
    if (nodes_ != nullptr) nodes_->finish();
    reap_orphans();
    kill_children(older_children);
    return end_;
  }

 private:
  bool has_ended() {
    if (launcher_ > 0 && waitpid(launcher_, &end_.launcher_status, WNOHANG) == launcher_) {
      launcher_ = -1;
    }
    return launcher_ < 0;
  }

  bool has_launcher_succeeded() const {
    return WIFEXITED(end_.launcher_status) && WEXITSTATUS(end_.launcher_status) == 0;
  }

  // On a busy host, keepers may report a little after the launcher has ended.
  void wait_for_reports() const {
    const auto until = Clock::now() + kReportLimit;
    while (read_records(session_, "exit").size() < read_records(session_, "pid").size()) {
      const bool has_children = waitpid(-1, nullptr, WNOHANG) >= 0;
      if (!has_children || Clock::now() > until) return;
      usleep(5000);
    }
  }

  void handle(int number) {
    if (number == SIGCHLD) return;
    const bool asks_to_end = number == SIGINT || number == SIGTERM;
    if (asks_to_end && was_asked_) return end();
    was_asked_ |= asks_to_end;
    end_.was_signalled = true;
    if (nodes_ != nullptr) nodes_->send_signal(number);
    const bool has_ranks = signal_ranks(session_, number) > 0;
    if (!has_ranks && (asks_to_end || number == SIGHUP)) end();  // no rank has started
  }

  // Keepers may outlive the launcher for a moment, and then become children of this process. If
  // they are killed, so do the processes that their programs left behind.
  static void reap_orphans() {
    for (int i = 0; i < 200; ++i) {
      pid_t reaped = 0;
      do {
        reaped = waitpid(-1, nullptr, WNOHANG);
      } while (reaped > 0);
      if (reaped < 0 && errno == ECHILD) return;
      usleep(5000);
    }
  }

  // Asks the launcher to end its ranks. If it does not, kills the ranks and the launcher.
  void end() {
    if (launcher_ < 0) return;
    if (nodes_ != nullptr) nodes_->expect_end();
    kill(launcher_, SIGTERM);
    for (int i = 0; i < 100 && !has_ended(); ++i)
      usleep(10000);
    if (launcher_ < 0) return;
    signal_ranks(session_, SIGKILL);
    kill(-launcher_, SIGKILL);
    kill(launcher_, SIGKILL);
    while (!has_ended())
      usleep(1000);
  }

  const std::string& session_;
  long limit_s_;
  Nodes* nodes_;
  int events_ = -1;  // receives signals
  pid_t launcher_ = -1;
  bool was_asked_ = false;  // by SIGINT or SIGTERM; a second one ends the job
  JobEnd end_;
};

}  // namespace

JobEnd run_job(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::string& session, long limit_s, Nodes* nodes) {
  return Job(session, limit_s, nodes).run(command, environment);
}

}  // namespace flowrun
