// Lets one call of a graph run at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace flow {
class RankContext;
}

namespace flow::nn {

// The calls of a graph share its plans and its memory, so they take turns. Thread safe.
class CallTurns {
 public:
  // Gives the calling thread the turn until end(), after other threads of its rank have had theirs.
  // A thread that has the turn may begin another one within it. Throws InvalidArgument while a
  // thread of another rank has the turn: that one may be waiting for this rank.
  void begin();
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_:
  int depth_ = 0;           // of the turns of `thread_`, which may begin within each other
  std::thread::id thread_;  // that has the turn, if depth_ > 0
  const RankContext* rank_ = nullptr;  // of thread_
};

}  // namespace flow::nn
