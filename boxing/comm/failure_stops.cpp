#include "boxing/comm/failure_stops.h"

#include <mutex>
#include <set>
#include <utility>

namespace flow::boxing {

namespace {

struct Stops {
  std::mutex mutex;
  std::set<FailureStop*> all;  // guarded by mutex
};

Stops& stops() {
  static Stops& instance = *new Stops;  // ranks end late
  return instance;
}

}  // namespace

FailureStop::FailureStop(std::function<void()> stop) : stop_(std::move(stop)) {
  const std::lock_guard lock(stops().mutex);
  stops().all.insert(this);
}

FailureStop::~FailureStop() {
  const std::lock_guard lock(stops().mutex);
  stops().all.erase(this);
}

void run_failure_stops() {
  const std::lock_guard lock(stops().mutex);
  for (FailureStop* stop : std::exchange(stops().all, {}))
    stop->stop_();
}

}  // namespace flow::boxing
