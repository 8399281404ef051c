// What has to stop when the world of this process fails, such as transfers that would wait forever
// for a rank that has ended.
#pragma once

#include <functional>
#include <memory>

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
  struct Once;
  struct All;
  static All& all();
  std::shared_ptr<Once> once_;
  friend void run_failure_stops();
};

// Called when a world has failed, also with its lock. Begins all stops at once, each on a thread of
// its own, and does not wait for them: one may wait for the device until another has stopped, or
// for ever.
void run_failure_stops();

}  // namespace flow::boxing
