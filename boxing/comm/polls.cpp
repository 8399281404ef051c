#include "boxing/comm/polls.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/log.h"
#include "core/signals.h"

namespace flow::boxing {

struct Poll::One {
  std::mutex mutex;
  std::function<Answer()> ask;  // empty: it has answered, or has ended; guarded by mutex

  void run() {
    std::unique_lock lock(mutex);
    const Answer answer = ask ? ask() : Answer();
    if (!answer) return;
    ask = {};
    lock.unlock();
    answer();
  }
};

struct Poll::All {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::shared_ptr<One>> polls;  // guarded by mutex

  All() {
    try {
      start_quiet_thread([this] { run(); }).detach();  // ends with the process
    } catch (const std::system_error&) {
      log_warning("[communicator] there are no more threads; errors of NCCL may go unnoticed");
    }
  }

  void run() {
    constexpr std::chrono::milliseconds kPause(500);
    for (;;) {
      std::set<std::shared_ptr<One>> asked;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !polls.empty(); });
        asked = polls;
      }
      for (const std::shared_ptr<One>& one : asked)
        one->run();
      std::this_thread::sleep_for(kPause);
    }
  }
};

Poll::All& Poll::all() {
  static All& instance = *new All;  // ranks end late
  return instance;
}

Poll::Poll(std::function<Answer()> ask) : one_(std::make_shared<One>()) {
  one_->ask = std::move(ask);
  const std::lock_guard lock(all().mutex);
  all().polls.insert(one_);
  all().changed.notify_all();
}

Poll::~Poll() {
  {
    const std::lock_guard lock(all().mutex);
    all().polls.erase(one_);
  }
  const std::lock_guard lock(one_->mutex);
  one_->ask = {};
}

}  // namespace flow::boxing
