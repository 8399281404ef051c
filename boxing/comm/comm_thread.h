// The thread of a rank that carries out collectives while the rank's own thread computes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Runs what it is given in order. Tasks use communicators of Channel::kBackground, so that they
// never meet calls of the rank's own thread. Thread safe.
class CommThread {
 public:
  explicit CommThread(RankContext& context);
  // Finishes what it was given.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // What `task` throws, the future rethrows.
  std::future<void> submit(std::function<void()> task);
  // Returns when all tasks are finished.
  void drain();

 private:
  void run();

  RankContext& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::packaged_task<void()>> tasks_;
  bool is_busy_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

// Made at first use.
CommThread& comm_thread(RankContext& context);
// Whether the caller is one.
bool is_comm_thread();
// Before a rank ends: others may wait for what it has still to do.
void drain_comm_thread(RankContext& context);

}  // namespace flow::boxing
