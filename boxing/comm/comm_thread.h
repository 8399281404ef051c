// The communication thread of a rank: it carries out collectives while the rank's own thread
// computes.
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

// Runs tasks in the order in which they were submitted. Tasks must use communicators of
// Channel::kBackground, so that their collectives never mix with those of the rank's own thread.
// Thread safe.
class CommThread {
 public:
  explicit CommThread(RankContext& context);
  // Runs all submitted tasks, then ends the thread.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // Returns immediately. The future rethrows the exception that `task` throws.
  std::future<void> submit(std::function<void()> task);
  // Blocks until all tasks have finished.
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

// The communication thread of a rank; started at first use.
CommThread& comm_thread(RankContext& context);
// True if the calling thread is a communication thread.
bool is_comm_thread();
// Blocks until the rank's communication thread, if there is one, has finished all tasks. Must be
// called before a rank ends, because other ranks may wait for its part in them.
void drain_comm_thread(RankContext& context);

}  // namespace flow::boxing
