#include "boxing/comm/thread_world.h"

#include <algorithm>
#include <thread>

#include <sched.h>

#include "boxing/comm/failure_stops.h"
#include "boxing/comm/thread_board.h"
#include "core/context.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

namespace {

int64_t num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// Lets the other hardware thread of the core run.
void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int64_t this_rank() {
  return thread_state().context->rank();
}

}  // namespace

WaitPoint::WaitPoint(ThreadWorld& world) : world_(world) {
  world.add(this);
}

void WaitPoint::wake_all() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

bool WaitPoint::spin(bool (*is_done)(const void*), const void* condition) const {
  for (int i = world_.num_spins(); i > 0; --i) {
    if (is_done(condition)) return true;
    pause_core();
  }
  constexpr int kYields = 16;
  for (int i = 0; i < kYields; ++i) {
    if (is_done(condition)) return true;
    std::this_thread::yield();
  }
  return is_done(condition);
}

void WaitPoint::sleep(bool (*is_done)(const void*), const void* condition,
                      const std::function<std::vector<int64_t>()>& missing,
                      const Fingerprint& what) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto warn_at = start + std::min<Clock::duration>(std::chrono::seconds(10),
                                                         Clock::duration(world_.timeout()) / 2);
  const auto fail_at = start + world_.timeout();
  bool has_warned = false;
  enum class Outcome { kDone, kFailed, kPeerAbsent, kTimeout, kWarn };
  for (;;) {
    Outcome outcome = Outcome::kDone;
    {
      std::unique_lock lock(mutex_);
      sleepers_.fetch_add(1);
      for (;;) {
        if (is_done(condition)) break;
        outcome = Outcome::kFailed;
        if (world_.has_failed()) break;
        outcome = Outcome::kPeerAbsent;
        const std::vector<int64_t> waited_for = missing();
        if (std::any_of(waited_for.begin(), waited_for.end(), [&](int64_t rank) {
              return world_.has_ended(rank) || world_.is_away(rank);
            })) {
          // The rank may have arrived just before it ended or left, between the two checks.
          if (is_done(condition)) outcome = Outcome::kDone;
          break;
        }
        outcome = Outcome::kDone;
        const auto until = has_warned ? fail_at : warn_at;
        if (changed_.wait_until(lock, until) == std::cv_status::timeout && !is_done(condition)) {
          outcome = Clock::now() >= fail_at ? Outcome::kTimeout : Outcome::kWarn;
          if (outcome == Outcome::kTimeout || !has_warned) break;
        }
      }
      sleepers_.fetch_sub(1);
    }
    if (outcome == Outcome::kDone) return;
    if (outcome == Outcome::kFailed) world_.throw_failure(what.site);
    if (outcome == Outcome::kWarn) {
      has_warned = true;
      log_warning(str("waiting for ", list_ranks(missing()), " in ", what));
      continue;
    }
    if (outcome == Outcome::kTimeout) {
      world_.fail(missing_failure(this_rank(), missing(), what, world_.timeout()));
    } else if (const auto absence = world_.absence_of(missing(), what)) {
      world_.fail(*absence);
    } else {
      continue;
    }
    world_.throw_failure(what.site);
  }
}

ThreadWorld::ThreadWorld(int64_t num_ranks)
    : num_ranks_(num_ranks),
      num_spins_(num_ranks <= num_cores() ? 2000 : 50),
      timeout_(time_limit()),
      ended_(static_cast<size_t>(num_ranks)),
      away_(static_cast<size_t>(num_ranks)),
      told_(static_cast<size_t>(num_ranks), false),
      messages_(static_cast<size_t>(num_ranks)) {
  for (int64_t rank = 0; rank < num_ranks; ++rank)
    inboxes_.push_back(std::make_unique<WaitPoint>(*this));
}

ThreadWorld::~ThreadWorld() = default;

ThreadBoard& ThreadWorld::board(const std::vector<int64_t>& ranks, Channel channel) {
  const std::lock_guard lock(boards_mutex_);
  auto& entry = boards_[{channel, ranks}];
  if (!entry) entry = std::make_unique<ThreadBoard>(*this, ranks);
  return *entry;
}

void ThreadWorld::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load()) return;
    failure_ = failure;
    failed_.store(true);
  }
  wake_everybody();
  run_failure_stops();
}

void ThreadWorld::throw_failure(Site site) {
  const int64_t rank = this_rank();
  const std::lock_guard lock(mutex_);
  if (failure_.rank >= 0) told_[static_cast<size_t>(rank)] = true;
  throw DistributedError(error_text(failure_), site);
}

void ThreadWorld::tell() {
  if (has_failed() && !was_told(this_rank())) throw_failure(Site::none());
}

bool ThreadWorld::was_told(int64_t rank) const {
  const std::lock_guard lock(mutex_);
  return told_[static_cast<size_t>(rank)];
}

Failure ThreadWorld::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void* ThreadWorld::slot(const void* key, std::shared_ptr<void> (*make)()) {
  const std::lock_guard lock(slots_mutex_);
  std::shared_ptr<void>& found = slots_[key];
  if (!found) found = make();
  return found.get();
}

void ThreadWorld::end(int64_t rank) {
  {
    const std::lock_guard lock(mutex_);
    ended_[static_cast<size_t>(rank)].store(true);
  }
  rank_has_ended_.notify_all();
  wake_everybody();
}

void ThreadWorld::leave(int64_t rank, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    messages_[static_cast<size_t>(rank)] = message;
    away_[static_cast<size_t>(rank)].store(true);
  }
  wake_everybody();
}

void ThreadWorld::come_back(int64_t rank) {
  const std::lock_guard lock(mutex_);
  away_[static_cast<size_t>(rank)].store(false);
}

std::optional<Failure> ThreadWorld::absence_of(const std::vector<int64_t>& ranks,
                                               const Fingerprint& what) const {
  const std::lock_guard lock(mutex_);
  for (const int64_t rank : ranks) {
    if (has_ended(rank)) {
      return missing_failure(this_rank(), ranks, what, std::chrono::seconds(0));
    }
    if (is_away(rank)) {
      return Failure{.rank = rank, .message = messages_[static_cast<size_t>(rank)]};
    }
  }
  return std::nullopt;
}

void ThreadWorld::wait_for_all_ends() {
  std::unique_lock lock(mutex_);
  rank_has_ended_.wait(lock, [&] {
    return std::all_of(ended_.begin(), ended_.end(),
                       [](const std::atomic<bool>& ended) { return ended.load(); });
  });
}

void ThreadWorld::add(WaitPoint* point) {
  const std::lock_guard lock(mutex_);
  wait_points_.push_back(point);
}

void ThreadWorld::wake_everybody() {
  std::vector<WaitPoint*> points;
  {
    const std::lock_guard lock(mutex_);
    points = wait_points_;
  }
  for (WaitPoint* point : points)
    point->wake_all();
}

}  // namespace flow::boxing
