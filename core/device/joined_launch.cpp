#include "core/device/joined_launch.h"

#include <exception>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace flow::cuda {

namespace {

struct PutOff {
  int num_scopes = 0;
  std::unique_ptr<JoinedLaunch> launch;
};

thread_local PutOff put_off_here;

}  // namespace

JoinLaunches::JoinLaunches() {
  ++put_off_here.num_scopes;
}

JoinLaunches::~JoinLaunches() {
  if (--put_off_here.num_scopes == 0) queue_joined_or_warn();
}

bool joins_launches() {
  return put_off_here.num_scopes > 0;
}

JoinedLaunch* joined_launch() {
  return put_off_here.launch.get();
}

void put_off(std::unique_ptr<JoinedLaunch> launch) {
  FLOW_ASSERT(put_off_here.launch == nullptr, "two launches were put off");
  put_off_here.launch = std::move(launch);
}

// The launch asks for its stream, which queues what was put off: it is taken out first.
void queue_joined() {
  if (put_off_here.launch == nullptr) [[likely]]
    return;
  const std::unique_ptr<JoinedLaunch> launch = std::move(put_off_here.launch);
  launch->launch();
}

void drop_joined() noexcept {
  put_off_here.launch = nullptr;
}

void queue_joined_or_warn() noexcept {
  try {
    queue_joined();
  } catch (const std::exception& error) {
    try {
      log_warning(error.what());
    } catch (...) {  // no memory for the text: nothing more can be reported
    }
  }
}

}  // namespace flow::cuda
