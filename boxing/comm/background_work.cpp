#include "boxing/comm/background_work.h"

#include <exception>
#include <utility>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/device_copy.h"

namespace flow::boxing {

struct BackgroundWork::Task {
  RankContext& rank;
  std::function<void()> run;
  // On a device: what comes before and the end of what was queued.
  DevicePointPtr begin = {};
  DevicePointPtr end = {};
};

BackgroundWork::BackgroundWork(RankContext& rank, DeviceType device, std::function<void()> task)
    : task_(std::make_shared<Task>(Task{.rank = rank, .run = std::move(task)})) {
  if (device == DeviceType::kCpu) {
    done_ = comm_thread(rank).submit([started = task_] { started->run(); });
    return;
  }
  task_->begin = queued_work(rank);
  done_ = comm_thread(rank).submit([started = task_] {
    run_on_communication_stream(started->rank, *started->begin, started->run, started->end);
  });
}

BackgroundWork& BackgroundWork::operator=(BackgroundWork&& other) noexcept {
  if (this == &other) return *this;
  discard();
  task_ = std::move(other.task_);
  done_ = std::move(other.done_);
  return *this;
}

// The memory that the task holds belongs to the waiting thread's stream, so it is released when
// this stream waits for the task.
void BackgroundWork::wait() {
  const std::shared_ptr<Task> task = std::move(task_);
  if (task == nullptr) return;
  done_.wait();
  if (task->end != nullptr) order_after(task->rank, *task->end);
  task->run = {};
  done_.get();
}

void BackgroundWork::discard() noexcept {
  try {
    wait();
  } catch (const std::exception&) {
    // Who discards the work does not want its result, or has an error to report already.
  }
}

}  // namespace flow::boxing
