// Work that the communication thread of a rank does while the rank's own thread computes.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "core/device.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// A running task; none if default constructed. Used by the thread that has started it.
//
// What the task queues on a device runs on the communication stream, after everything that the
// starting thread had queued before. wait() lets later work of the waiting thread run after it, so
// tensors may be passed to the task and taken from it as if it ran at once. The host waits for no
// work of the device.
class BackgroundWork {
 public:
  BackgroundWork() = default;
  // Runs `task` after those that were started before (boxing/comm/comm_thread.h). `device` is where
  // its data is.
  BackgroundWork(RankContext& rank, DeviceType device, std::function<void()> task);

  // Waits for a running task and ignores its exception.
  ~BackgroundWork() { discard(); }

  BackgroundWork(BackgroundWork&&) noexcept = default;
  BackgroundWork& operator=(BackgroundWork&& other) noexcept;

  // Blocks until the task has ended, or has queued its work; then releases what the task holds and
  // rethrows its exception. Does nothing if no task is running.
  void wait();
  // The same, but ignores the exception.
  void discard() noexcept;

 private:
  struct Task;

  std::shared_ptr<Task> task_;
  std::future<void> done_;
};

}  // namespace flow::boxing
