#include "boxing/ranks/exit_limit.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "boxing/comm/failure.h"
#include "boxing/ranks/rank_status.h"
#include "core/error.h"
#include "core/signals.h"

namespace flow::boxing {

namespace {

using Clock = std::chrono::steady_clock;

std::string text_of(Clock::duration duration) {
  return str(std::chrono::duration<double>(duration).count());
}

class ExitLimit {
 public:
  ExitLimit() : limit_(time_limit()) {
    try {
      start_quiet_thread([this] { run(); }).detach();  // ends with the process
    } catch (const std::system_error&) {               // without a thread the exit has no limit
    }
  }

  void start(int64_t rank) {
    {
      const std::lock_guard lock(mutex_);
      rank_ = rank;
      started_ = Clock::now();
      has_warned_ = false;
    }
    changed_.notify_all();
  }

  void pause() {
    const std::lock_guard lock(mutex_);
    started_.reset();
  }

 private:
  void run() {
    const auto warn_after =
        std::min<Clock::duration>(std::chrono::seconds(10), Clock::duration(limit_) / 2);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return started_.has_value(); });
      changed_.wait_until(lock, *started_ + (has_warned_ ? Clock::duration(limit_) : warn_after));
      if (!started_) continue;
      const auto now = Clock::now();
      if (now >= *started_ + limit_) end();
      if (has_warned_ || now < *started_ + warn_after) continue;
      has_warned_ = true;
      const std::string line =
          str("[rank ", rank_, "] warning: the program left main ", text_of(warn_after),
              " s ago, but its handlers of atexit or its static objects keep it\n");
      static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) == 0);
    }
  }

  [[noreturn]] void end() const {
    Failure failure{.cause = FailureCause::kTimeout, .message = "", .op = "exit"};
    if (rank_ >= 0) failure.missing_ranks = {rank_};
    const std::string who = rank_ < 0 ? "the process of the thread ranks" : str("rank ", rank_);
    const std::string message = str(
        "[exit] ", who, " did not end within ", limit_.count(),
        " s after it left main; a handler of atexit or the destructor of a static object hangs; "
        "mend it, or raise FLOW_TIMEOUT_S");
    end_process(rank_, status_of(failure, message));
  }

  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t rank_ = -1;
  std::optional<Clock::time_point> started_;  // empty: paused
  bool has_warned_ = false;
};

// Never destroyed: it watches over the destructors of static objects.
ExitLimit& exit_limit() {
  static ExitLimit& limit = *new ExitLimit;
  return limit;
}

}  // namespace

void start_exit_limit(int64_t rank) {
  exit_limit().start(rank);
}

void pause_exit_limit() {
  exit_limit().pause();
}

}  // namespace flow::boxing
