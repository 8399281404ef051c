// What the thread ranks of one world share: who has failed or ended, and where ranks wait.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/comm/failure.h"
#include "core/site.h"

namespace flow::boxing {

class ThreadBoard;
class ThreadWorld;

// Where threads wait for a condition that others make true: a short spin, a few yields, then
// sleep, so that waiting ranks leave shared cores to those that work.
class WaitPoint {
 public:
  explicit WaitPoint(ThreadWorld& world);
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  // Returns when is_done() is true. Throws DistributedError when the world has failed, or when
  // `missing()` (world ranks waited for) names one that has ended, or after FLOW_TIMEOUT_S.
  // is_done reads atomics that are stored with seq_cst order before notify(). `what` is the
  // caller's operation, for the report.
  template <class IsDone, class Missing>
  void wait(const IsDone& is_done, const Missing& missing, const Fingerprint& what) {
    const auto call = [](const void* condition) {
      return (*static_cast<const IsDone*>(condition))();
    };
    if (!spin(call, &is_done)) sleep(call, &is_done, missing, what);
  }

  // After a change that may end a wait.
  void notify() {
    if (sleepers_.load() != 0) wake_all();
  }

  // Also when nobody seems to sleep: for changes of the world's state.
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

// Thread safe. Outlives the communicators of its ranks.
class ThreadWorld {
 public:
  explicit ThreadWorld(int64_t num_ranks);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  int64_t num_ranks() const { return num_ranks_; }

  // What all ranks of `ranks` meet at; made by the first that asks.
  ThreadBoard& board(const std::vector<int64_t>& ranks, Channel channel);

  // Where `rank` waits for its messages.
  WaitPoint& inbox(int64_t rank) { return *inboxes_[static_cast<size_t>(rank)]; }

  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // The first failure counts; all ranks that wait or arrive get a DistributedError.
  void fail(const Failure& failure);
  // Throws the DistributedError of the failure for an operation at `site`.
  [[noreturn]] void throw_failure(Site site);
  // Whether `rank` was told of a failure that another rank caused.
  bool was_told(int64_t rank) const;
  Failure failure() const;

  // `rank` will not arrive anywhere any more.
  void end(int64_t rank);

  bool has_ended(int64_t rank) const { return ended_[static_cast<size_t>(rank)].load(); }

  // Spins worth doing before sleeping: few when ranks outnumber cores.
  int num_spins() const { return num_spins_; }

  std::chrono::seconds timeout() const { return timeout_; }

  // State of a folder to the right that the ranks share, made at first use and found by its type.
  template <class T>
  T& slot() {
    static constexpr char kKey = 0;
    return *static_cast<T*>(slot(&kKey, [] { return std::shared_ptr<void>(new T); }));
  }

 private:
  friend class WaitPoint;
  void add(WaitPoint* point);
  void wake_everybody();
  void* slot(const void* key, std::shared_ptr<void> (*make)());

  int64_t num_ranks_;
  int num_spins_;
  std::chrono::seconds timeout_;
  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> ended_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Failure failure_;
  std::vector<bool> told_;
  std::vector<WaitPoint*> wait_points_;
  // Taken before mutex_, as making a board adds its wait points.
  std::mutex boards_mutex_;
  std::map<std::pair<Channel, std::vector<int64_t>>, std::unique_ptr<ThreadBoard>>
      boards_;  // guarded by boards_mutex_
  std::mutex slots_mutex_;
  std::map<const void*, std::shared_ptr<void>> slots_;  // guarded by slots_mutex_
  std::vector<std::unique_ptr<WaitPoint>> inboxes_;     // constant
};

}  // namespace flow::boxing
