// What has to stop when the world of this process fails, such as transfers that would wait forever
// for a rank that has ended.
#pragma once

#include <functional>

namespace flow::boxing {

// Calls `stop` at most once, after the world has failed and from any thread, unless it is destroyed
// before. Its destructor waits for a call that is running.
class FailureStop {
 public:
  explicit FailureStop(std::function<void()> stop);
  ~FailureStop();
  FailureStop(const FailureStop&) = delete;
  FailureStop& operator=(const FailureStop&) = delete;

 private:
  std::function<void()> stop_;
  friend void run_failure_stops();
};

// Called when a world has failed. Holds no lock of the world.
void run_failure_stops();

}  // namespace flow::boxing
