#include "boxing/comm/failure_stops.h"

#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace flow::boxing {

struct FailureStop::Once {
  std::mutex mutex;
  std::function<void()> stop;  // empty: it was called, or may not be any more; guarded by mutex

  void run() {
    const std::lock_guard lock(mutex);
    if (const auto call = std::exchange(stop, {})) call();
  }
};

struct FailureStop::All {
  std::mutex mutex;
  std::set<std::shared_ptr<Once>> stops;  // guarded by mutex
};

FailureStop::All& FailureStop::all() {
  static All& instance = *new All;  // ranks end late
  return instance;
}

FailureStop::FailureStop(std::function<void()> stop) : once_(std::make_shared<Once>()) {
  once_->stop = std::move(stop);
  const std::lock_guard lock(all().mutex);
  all().stops.insert(once_);
}

FailureStop::~FailureStop() {
  {
    const std::lock_guard lock(all().mutex);
    all().stops.erase(once_);
  }
  const std::lock_guard lock(once_->mutex);
  once_->stop = {};
}

void run_failure_stops() {
  using Once = FailureStop::Once;
  std::set<std::shared_ptr<Once>> stops;
  {
    const std::lock_guard lock(FailureStop::all().mutex);
    stops = std::exchange(FailureStop::all().stops, {});
  }
  for (const std::shared_ptr<Once>& once : stops) {
    try {
      std::thread([once] { once->run(); }).detach();
    } catch (const std::system_error&) {  // there are no more threads
      once->run();
    }
  }
}

}  // namespace flow::boxing
