// Watches over the rank of a process while its other threads compute, run foreign code or are
// stuck. Only the watchdog may end the process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "boxing/comm/failure.h"

namespace flow::boxing {

class ProcessWorld;

// A thread that, twice a second, processes messages from other ranks and sends the next rank a sign
// of life. The world fails if the previous rank has sent none for 4.5 s: that rank is stopped, or
// its host is cut off. After a failure of the world, whichever rank found it, this rank's threads
// have FLOW_TIMEOUT_S (at most 10 s) to end the process. Then the watchdog writes its report
// (boxing/ranks/rank_status.h) and ends it.
//
// A rank that computes for a long time is not an error: its watchdog sends the signs of life. A
// host that stands still as a whole is not an error either: a watchdog that was late itself does
// not blame another rank.
class Watchdog {
 public:
  // The world must outlive it.
  explicit Watchdog(ProcessWorld& world);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void look(Clock::time_point now);
  void blame_silent_rank(Clock::time_point now);
  [[noreturn]] void end_process(const Failure& failure) const;

  ProcessWorld& world_;
  std::chrono::milliseconds patience_;
  // Used by the watchdog's thread only.
  Clock::time_point looked_at_;
  Clock::time_point blames_from_;
  Clock::time_point failed_at_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace flow::boxing
