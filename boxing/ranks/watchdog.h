// Watches over the rank of a process while its other threads compute, run foreign code or are
// stuck. Only the watchdog may end the process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "boxing/comm/failure.h"
#include "boxing/comm/host_process.h"
#include "boxing/ranks/own_descriptors.h"

namespace flow::boxing {

class ProcessWorld;

// A thread that, twice a second, processes messages from other ranks and sends the next rank a sign
// of life. The world fails if the previous rank has sent none for 4 s and, according to the system,
// is stopped or has ended; a rank of this host that only lacks a core is slow. A rank of another
// host fails if it has sent none for 30 s: it is stopped, or its host is cut off. After a failure
// of the world, whichever rank found it, this rank's threads have FLOW_TIMEOUT_S (at most 10 s) to
// end the process. Then the watchdog writes its report (boxing/ranks/rank_status.h) and ends it. If
// the program has closed descriptors that MPI needs, it tells the other ranks and ends the process
// at once.
//
// A rank that computes for a long time is not an error: its watchdog sends the signs of life. A
// host that stands still as a whole is not an error either: a watchdog that was late itself does
// not blame a rank of another host.
class Watchdog {
 public:
  // The world must outlive it. The watchdog looks after `descriptors`.
  Watchdog(ProcessWorld& world, OwnDescriptors descriptors);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void look(Clock::time_point now);
  void blame_silent_rank(Clock::time_point now);
  void blame_stopped_rank(int64_t rank, Clock::time_point heard_at, Clock::time_point now);
  void blame(int64_t rank, FailureCause cause, const std::string& what, Clock::duration silence);
  void end_if_descriptors_are_closed();
  [[noreturn]] void end_process(const Failure& failure) const;

  ProcessWorld& world_;
  const OwnDescriptors descriptors_;
  std::chrono::milliseconds patience_;
  HostProcess neighbour_;  // the process of the previous rank, if it is on this host
  // Used by the watchdog's thread only.
  Clock::time_point looked_at_;
  Clock::time_point blames_from_;
  Clock::time_point stopped_since_{};  // when the neighbour was first seen not to run
  Clock::time_point failed_at_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace flow::boxing
