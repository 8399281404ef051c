#include "boxing/comm/comm_thread.h"

#include <utility>

#include "core/context.h"

namespace flow::boxing {

namespace {
constinit thread_local bool is_one = false;
}

CommThread::CommThread(RankContext& context) : context_(context), thread_([this] { run(); }) {}

CommThread::~CommThread() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::future<void> CommThread::submit(std::function<void()> task) {
  std::packaged_task<void()> packaged(std::move(task));
  std::future<void> result = packaged.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(packaged));
  }
  changed_.notify_all();
  return result;
}

void CommThread::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && !is_busy_; });
}

void CommThread::run() {
  is_one = true;
  const RankScope scope(context_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_over_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::packaged_task<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    is_busy_ = true;
    lock.unlock();
    task();
    task = {};  // and release the tensors that it holds
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

CommThread& comm_thread(RankContext& context) {
  std::shared_ptr<CommThread>& thread = context.slot_ptr<CommThread>();
  if (!thread) thread = std::make_shared<CommThread>(context);
  return *thread;
}

bool is_comm_thread() {
  return is_one;
}

void drain_comm_thread(RankContext& context) {
  if (const auto& thread = context.slot_ptr<CommThread>()) thread->drain();
}

}  // namespace flow::boxing
