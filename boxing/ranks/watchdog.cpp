#include "boxing/ranks/watchdog.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <string>

#include <unistd.h>

#include "boxing/comm/process_world.h"
#include "boxing/ranks/rank_status.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeat(500);
constexpr milliseconds kSilence(4500);
// If two looks are further apart than this, this host or process was stopped itself.
constexpr milliseconds kLate(1500);

}  // namespace

Watchdog::Watchdog(ProcessWorld& world)
    : world_(world),
      patience_(std::min<milliseconds>(time_limit(), std::chrono::seconds(10))),
      looked_at_(Clock::now()),
      blames_from_(looked_at_) {
  // Blocks all signals in the watchdog's thread: they are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  for (milliseconds pause(0); !changed_.wait_for(lock, pause, [&] { return is_stopping_; });
       pause = kBeat) {
    lock.unlock();
    try {
      look(Clock::now());
    } catch (const std::exception& error) {  // the connection itself is broken
      end_process({.cause = FailureCause::kRankLost, .message = error.what()});
    }
    lock.lock();
  }
}

void Watchdog::look(Clock::time_point now) {
  if (now > looked_at_ + kLate) blames_from_ = now;
  looked_at_ = now;
  if (!world_.attend()) return;  // another thread processes the messages
  const std::optional<Failure> failure = world_.failure();
  if (!failure) return blame_silent_rank(now);
  if (failed_at_ == Clock::time_point{}) failed_at_ = now;
  if (now > failed_at_ + patience_) end_process(*failure);
}

void Watchdog::blame_silent_rank(Clock::time_point now) {
  const auto sign = world_.last_sign_of_life();
  if (!sign || now < std::max(sign->at, blames_from_) + kSilence) return;
  const int64_t rank = world_.identity().rank;
  world_.fail({.cause = FailureCause::kTimeout,
               .message = str("[watchdog] rank ", rank, " received no sign of life from rank ",
                              sign->rank, " for ", std::chrono::duration<double>(kSilence).count(),
                              " s; that rank is stopped, or its host is cut off"),
               .op = "heartbeat",
               .missing_ranks = {sign->rank}});
}

void Watchdog::end_process(const Failure& failure) const {
  const int64_t rank = world_.identity().rank;
  RankStatus status = status_of(failure, "");
  status.message =
      str("[watchdog] rank ", rank, " did not end within ",
          std::chrono::duration<double>(patience_).count(),
          " s after the ranks failed, so the watchdog ends it; the error of the ranks: ",
          error_text(failure));
  // If the rank has already reported its own end, that report stays.
  if (failure.rank != rank) write_rank_status(rank, status);
  const std::string line = str("rank ", rank, ": ", status.message, '\n');
  static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) == 0);
  _exit(status.exit_code);
}

}  // namespace flow::boxing
