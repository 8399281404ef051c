// The state that the thread ranks of one world share: which ranks have failed or ended, and where
// ranks wait.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/comm/failure.h"
#include "core/site.h"

namespace flow::boxing {

class ThreadBoard;
class ThreadWorld;

// Lets threads wait for a condition that other threads make true. A waiting thread spins briefly,
// yields a few times and then sleeps, so that it does not take a core from threads that work.
class WaitPoint {
 public:
  explicit WaitPoint(ThreadWorld& world);
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  // Blocks until is_done() is true. Throws DistributedError if the world has failed, if `missing()`
  // (the world ranks waited for) contains a rank that has ended or is away, or after
  // FLOW_TIMEOUT_S. is_done
  // may read only atomics that are stored with seq_cst order before notify(). `what` is the
  // caller's operation, for the report.
  template <class IsDone, class Missing>
  void wait(const IsDone& is_done, const Missing& missing, const Fingerprint& what) {
    const auto call = [](const void* condition) {
      return (*static_cast<const IsDone*>(condition))();
    };
    if (!spin(call, &is_done)) sleep(call, &is_done, missing, what);
  }

  // Call it after a change that may end a wait.
  void notify() {
    if (sleepers_.load() != 0) wake_all();
  }

  // Also wakes threads that are not counted as sleeping yet; for changes of the world's state.
  void wake_all();

 private:
  bool spin(bool (*is_done)(const void*), const void* condition) const;
  void sleep(bool (*is_done)(const void*), const void* condition,
             const std::function<std::vector<int64_t>()>& missing, const Fingerprint& what);

  ThreadWorld& world_;
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Thread safe. Must outlive the communicators of its ranks.
class ThreadWorld {
 public:
  explicit ThreadWorld(int64_t num_ranks);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  int64_t num_ranks() const { return num_ranks_; }

  // The board of the group `ranks`; created by the first caller.
  ThreadBoard& board(const std::vector<int64_t>& ranks, Channel channel);

  // The wait point of `rank` for messages.
  WaitPoint& inbox(int64_t rank) { return *inboxes_[static_cast<size_t>(rank)]; }

  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // Records a failure; the first one counts. All ranks that wait or arrive get a DistributedError.
  void fail(const Failure& failure);
  // Throws the failure as a DistributedError for an operation at `site`.
  [[noreturn]] void throw_failure(Site site);
  // Throws the failure, if there is one, unless the calling thread's rank was told.
  void tell();
  // True if `rank` was told of a failure that another rank caused.
  bool was_told(int64_t rank) const;
  Failure failure() const;

  // Announces that `rank` takes part in nothing more.
  void end(int64_t rank);

  // Blocks until all ranks have ended, however long they work.
  void wait_for_all_ends();

  bool has_ended(int64_t rank) const { return ended_[static_cast<size_t>(rank)].load(); }

  // While `rank` is away, a rank that waits for it makes the world fail with `message`.
  void leave(int64_t rank, const std::string& message);
  void come_back(int64_t rank);

  bool is_away(int64_t rank) const { return away_[static_cast<size_t>(rank)].load(); }

  // The number of spins before a thread sleeps; small if there are more ranks than cores.
  int num_spins() const { return num_spins_; }

  std::chrono::seconds timeout() const { return timeout_; }

  // State that the ranks share on behalf of a higher folder; created at first use and identified by
  // its type.
  template <class T>
  T& slot() {
    static constexpr char kKey = 0;
    return *static_cast<T*>(slot(&kKey, [] { return std::shared_ptr<void>(new T); }));
  }

 private:
  friend class WaitPoint;
  void add(WaitPoint* point);
  void wake_everybody();
  // The failure of waiting for `ranks`, one of which has ended or is away; empty if none is any
  // more.
  std::optional<Failure> absence_of(const std::vector<int64_t>& ranks,
                                    const Fingerprint& what) const;
  void* slot(const void* key, std::shared_ptr<void> (*make)());

  int64_t num_ranks_;
  int num_spins_;
  std::chrono::seconds timeout_;
  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> ended_;
  std::vector<std::atomic<bool>> away_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Failure failure_;
  std::vector<bool> told_;
  std::vector<std::string> messages_;  // of the ranks that are away
  std::condition_variable rank_has_ended_;
  std::vector<WaitPoint*> wait_points_;
  // Locked before mutex_, because making a board adds its wait points.
  std::mutex boards_mutex_;
  std::map<std::pair<Channel, std::vector<int64_t>>, std::unique_ptr<ThreadBoard>>
      boards_;  // guarded by boards_mutex_
  std::mutex slots_mutex_;
  std::map<const void*, std::shared_ptr<void>> slots_;  // guarded by slots_mutex_
  std::vector<std::unique_ptr<WaitPoint>> inboxes_;     // never changes
};

}  // namespace flow::boxing
