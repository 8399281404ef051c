#include "boxing/ranks/watchdog.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "boxing/comm/process_world.h"
#include "boxing/ranks/rank_status.h"
#include "core/error.h"
#include "core/signals.h"

namespace flow::boxing {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeat(500);
// How long a rank must have been silent to be blamed, if the system says that it does not run, and
// if it is on another host, so that nobody can say.
constexpr milliseconds kSilence(4000);
constexpr milliseconds kSilenceOfHost(30'000);
// A host that continues after a pause may show a process as stopped for a moment.
constexpr milliseconds kStopped(2500);
// If two looks are further apart than this, this host or process was stopped itself.
constexpr milliseconds kLate(1500);

}  // namespace

Watchdog::Watchdog(ProcessWorld& world, OwnDescriptors descriptors)
    : world_(world),
      descriptors_(std::move(descriptors)),
      patience_(std::min<milliseconds>(time_limit(), std::chrono::seconds(10))),
      looked_at_(Clock::now()),
      blames_from_(looked_at_) {
  if (const auto sign = world.last_sign_of_life()) {
    neighbour_ = world.transport().process_of(sign->rank);
    if (state_of(neighbour_) == ProcessState::kUnknown) neighbour_ = {};
  }
  thread_ = start_quiet_thread([this] { run(); });
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
      end_if_descriptors_are_closed();
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
  if (!sign) return;
  if (neighbour_.id != 0) return blame_stopped_rank(sign->rank, sign->at, now);
  if (now < std::max(sign->at, blames_from_) + kSilenceOfHost) return;
  blame(sign->rank, FailureCause::kTimeout, "that rank is stopped, or its host is cut off",
        kSilenceOfHost);
}

void Watchdog::blame_stopped_rank(int64_t rank, Clock::time_point heard_at, Clock::time_point now) {
  const ProcessState state = state_of(neighbour_);
  if (state == ProcessState::kRunning) {
    stopped_since_ = {};
    return;
  }
  if (stopped_since_ == Clock::time_point{}) stopped_since_ = now;
  if (now < stopped_since_ + kStopped || now < heard_at + kSilence) return;
  if (state == ProcessState::kStopped) {
    blame(rank, FailureCause::kTimeout, "its process is stopped", kSilence);
  } else {
    blame(rank, FailureCause::kRankLost, "its process has ended", kSilence);
  }
}

void Watchdog::blame(int64_t rank, FailureCause cause, const std::string& what,
                     Clock::duration silence) {
  world_.fail({.cause = cause,
               .message = str("[watchdog] rank ", world_.identity().rank,
                              " received no sign of life from rank ", rank, " for ",
                              std::chrono::duration<double>(silence).count(), " s; ", what),
               .op = "heartbeat",
               .missing_ranks = {rank}});
}

void Watchdog::end_if_descriptors_are_closed() {
  const std::optional<int> closed = descriptors_.find_closed();
  if (!closed || !world_.is_open()) return;  // the end of the connection closes them too
  const int64_t rank = world_.identity().rank;
  const std::string message =
      str("[watchdog] the program closed file descriptor ", *closed,
          ", which MPI needs; close only descriptors that the program opened, and mark those that "
          "children must not inherit with O_CLOEXEC");
  world_.fail({.rank = rank, .message = message});
  boxing::end_process(rank,
                      {.state = "failed", .exit_code = 1, .cause = "error", .message = message});
}

void Watchdog::end_process(const Failure& failure) const {
  const int64_t rank = world_.identity().rank;
  RankStatus status = status_of(failure, "");
  status.message =
      str("[watchdog] rank ", rank, " did not end within ",
          std::chrono::duration<double>(patience_).count(),
          " s after the ranks failed, so the watchdog ends it; the error of the ranks: ",
          error_text(failure));
  boxing::end_process(rank, status);
}

}  // namespace flow::boxing
