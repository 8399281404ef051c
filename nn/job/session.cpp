#include "nn/job/session.h"

#include <string>
#include <utility>

#include <cxxabi.h>

#include "boxing/ranks/fail_ranks.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "core/generator.h"
#include "nn/job/rank_job.h"

namespace flow::job {

namespace {
std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}
}  // namespace

Session& Session::get() {
  static Session& session = *new Session();
  return session;
}

void Session::check_not_running(const char* what) const {
  if (is_running_) {
    throw InvalidArgument(str("[job] ", what, " was called after the first job ran on ",
                              num_devices_,
                              " devices; call it at the start of the program, or after close()"));
  }
}

void Session::set_device_num(std::string_view device, int64_t count) {
  if (parse_device_type(device) != DeviceType::kCpu) {
    throw Unsupported(str("[job] device_num does not support ", device,
                          "; jobs run on cpu devices in this release; use \"cpu\""));
  }
  if (count < 1)
    throw InvalidArgument(str("[job] the number of devices must be at least 1; received ", count));
  if (flow::internal::current_thread_state != nullptr) {
    throw InvalidArgument(
        "[job] device_num was called after this thread made tensors or called flow as a rank; call "
        "it at the start of main");
  }
  const std::lock_guard lock(mutex_);
  check_not_running("device_num");
  num_devices_ = count;
}

void Session::set_seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  check_not_running("manual_seed");
  seed_ = seed;
}

void Session::add(const std::shared_ptr<internal::Definition>& definition) {
  const std::lock_guard lock(mutex_);
  definition->number = static_cast<int64_t>(definitions_.size());
  definitions_.push_back(definition);
}

std::vector<std::shared_ptr<const internal::Definition>> Session::definitions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const internal::Definition>> alive;
  for (const auto& definition : definitions_) {
    if (auto shared = definition.lock()) alive.push_back(std::move(shared));
  }
  return alive;
}

int64_t Session::num_devices() const {
  const std::lock_guard lock(mutex_);
  return num_devices_;
}

void Session::start() {
  driver_ = std::thread([this, count = num_devices_] {
    std::exception_ptr error;
    try {
      run_ranks(count, [this] { serve(); });
    } catch (...) {  // passed on to the caller
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    if (error_ == nullptr) error_ = error;
    changed_.notify_all();
  });
  is_running_ = true;
}

void Session::serve() {
  if (seed_) manual_seed(*seed_);  // not guarded: set before the ranks started
  RankJob job;
  for (int64_t done = 0;; ++done) {
    const std::function<void(RankJob&)>* command = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return num_commands_ > done || is_closing_ || is_broken_; });
      if (num_commands_ == done || is_broken_) return;
      command = command_;
    }
    std::exception_ptr error;
    bool is_of_world = false;
    try {
      (*command)(job);
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (const DistributedError&) {  // no rank can continue
      error = std::current_exception();
      is_of_world = true;
    } catch (...) {  // passed on to the caller
      error = std::current_exception();
    }
    report(done, std::move(error), is_of_world);
  }
}

// A rank that fails alone ends with its error, which tells the other ranks.
void Session::report(int64_t command, std::exception_ptr error, bool is_of_world) {
  {
    const std::lock_guard lock(mutex_);
    ++num_reported_;
    if (error == nullptr) ++num_done_;
    if (error != nullptr && !is_of_world) ++num_failed_;
    if (error != nullptr && error_ == nullptr) error_ = error;
    changed_.notify_all();
  }
  if (error == nullptr) return;
  const bool goes_on = !is_of_world && have_all_failed(command, error);
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (goes_on) {
    error = nullptr;  // under the lock: the caller may be reading it
    ++num_done_;
    return;
  }
  is_broken_ = true;
  std::rethrow_exception(error);
}

bool Session::have_all_failed(int64_t command, const std::exception_ptr& error) {
  const boxing::RankAway away(*thread_state().context, text_of(error));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return num_reported_ == (command + 1) * num_devices_ || is_broken_; });
  return num_failed_ == num_devices_ && !is_broken_;
}

void Session::run(const std::function<void(RankJob&)>& command) {
  if (flow::internal::current_thread_state != nullptr) {
    throw InvalidArgument(
        "[job] the thread that runs a job has made tensors or called flow as a rank; run jobs from "
        "a thread that is not a rank, and call close() before it makes tensors");
  }
  const std::lock_guard caller(caller_);
  std::unique_lock lock(mutex_);
  if (!is_running_) start();
  if (has_ended_) {
    throw DistributedError(
        "[job] the ranks of the devices have ended with an earlier error, and the variables are "
        "lost; call close() and start again from a checkpoint");
  }
  error_ = nullptr;
  num_failed_ = 0;
  command_ = &command;
  ++num_commands_;
  changed_.notify_all();
  const int64_t when_all_have = num_commands_ * num_devices_;
  changed_.wait(lock, [&] { return (num_done_ == when_all_have && !is_broken_) || has_ended_; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void Session::close() {
  const std::lock_guard caller(caller_);  // no command may start while the ranks end
  std::thread driver;
  {
    const std::lock_guard lock(mutex_);
    if (!is_running_) return;
    is_closing_ = true;
    changed_.notify_all();
    driver = std::move(driver_);
  }
  driver.join();
  const std::lock_guard lock(mutex_);
  is_running_ = is_closing_ = is_broken_ = has_ended_ = false;
  num_commands_ = num_reported_ = num_failed_ = num_done_ = 0;
  num_devices_ = 1;
  seed_.reset();
  error_ = nullptr;
}

}  // namespace flow::job
