// Looks after the rank of a process while its other threads are busy elsewhere: with computing, in
// foreign code, or stuck. It alone may end the process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "boxing/comm/failure.h"

namespace flow::boxing {

class ProcessWorld;

// A thread that, twice a second, takes in what other ranks have said and tells the next rank that
// this one lives. When the rank before it has given no sign of life for 4.5 s (it is stopped, or
// its host is cut off) the world fails. When the world has failed, whoever found it, this rank's
// threads get FLOW_TIMEOUT_S, 10 s at most, to end the process; then the watchdog does, after
// writing its report (boxing/ranks/rank_status.h).
//
// A rank that computes for long is no fault: its watchdog speaks for it. Neither is a host that
// stands still as a whole: a watchdog that was late itself blames nobody.
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
  // Of the thread alone.
  Clock::time_point looked_at_;
  Clock::time_point blames_from_;
  Clock::time_point failed_at_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace flow::boxing
