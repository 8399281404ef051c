// Watches a rank while it connects with the others. It does so inside MPI_Init, which waits for
// ever for a rank that never makes a flow call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/launcher.h"

namespace flow::boxing {

// Announces that this rank starts to connect, and starts a thread that ends the process if it has
// not been destroyed after FLOW_TIMEOUT_S, or once flowrun reports that a rank has ended which
// never started to connect. The thread warns after half of the time (at most 10 s), and names the
// ranks that have not announced themselves. Ranks of other hosts are not seen, so flowrun names
// those.
class JoinWatch {
 public:
  explicit JoinWatch(const Launcher& launcher);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void run();
  // Whether all ranks are on this host and announce themselves to this rank.
  bool sees_all() const;
  bool all_are_joining() const;
  std::vector<int64_t> missing_ranks() const;
  std::string list_missing() const;
  void end_if_a_rank_has_left() const;
  [[noreturn]] void give_up(std::chrono::seconds limit) const;

  Launcher launcher_;
  std::string folder_;  // in which ranks of this host announce themselves; may be empty
  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace flow::boxing
