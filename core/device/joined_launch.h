// Joins work on many tensors into one launch of a kernel. A launch costs microseconds, and a small
// tensor does not fill a device. The kernels are in ops/kernel/many_tensors_cuda.cuh.
#pragma once

#include <memory>

namespace flow::cuda {

// While an instance lives, kernels that can be joined put off what the calling thread asks of them.
// One launch does what was put off, before the thread queues other work on its device, waits for
// it, or frees its memory, and at the latest at the end. So every result is that of single launches
// in the same order. Instances may be nested. Without CUDA, and for host memory, it changes
// nothing.
class JoinLaunches {
 public:
  JoinLaunches();
  // Logs a failure instead of throwing it.
  ~JoinLaunches();  // NOLINT(performance-trivially-destructible): with CUDA it does work
  JoinLaunches(const JoinLaunches&) = delete;
  JoinLaunches& operator=(const JoinLaunches&) = delete;
};

// Forgets what the calling thread has put off, after an error in a capture of it.
void drop_joined() noexcept;

// Queues what the calling thread has put off. Call it before another thread may queue work that
// depends on it.
void queue_joined();

// What a kernel has put off.
class JoinedLaunch {
 public:
  JoinedLaunch() = default;
  virtual ~JoinedLaunch() = default;
  JoinedLaunch(const JoinedLaunch&) = delete;
  JoinedLaunch& operator=(const JoinedLaunch&) = delete;

  virtual void launch() = 0;
};

// ---- For kernels

// Whether the calling thread has a JoinLaunches.
bool joins_launches();
// Null: nothing was put off.
JoinedLaunch* joined_launch();
// Requires: nothing was put off.
void put_off(std::unique_ptr<JoinedLaunch> launch);
// Like queue_joined(), but logs a failure instead of throwing it.
void queue_joined_or_warn() noexcept;

}  // namespace flow::cuda
