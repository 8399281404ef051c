// The ranks that run jobs: threads that wait for the commands of a caller that is not a rank.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "nn/job/function.h"

namespace flow::job {

class RankJob;

// There is one session per process. It is never destroyed: when the process ends, its ranks are
// still waiting for a command. Thread safe.
class Session {
 public:
  static Session& get();

  // Both throw InvalidArgument once the ranks are running.
  void set_device_num(std::string_view device, int64_t count);
  void set_seed(uint64_t seed);

  // Registers a function and gives it a number.
  void add(const std::shared_ptr<internal::Definition>& definition);
  // The functions that still exist, in order of definition.
  std::vector<std::shared_ptr<const internal::Definition>> definitions() const;

  int64_t num_devices() const;

  // Runs `command` on every rank and returns when all ranks have finished it. The first call starts
  // the ranks. Rethrows the first exception of a rank. If all ranks throw, however much later than
  // the first one, the session goes on. If only some ranks throw, the others are told and the
  // session is over: every later command throws DistributedError. Throws
  // InvalidArgument if the calling thread is a rank.
  void run(const std::function<void(RankJob&)>& command);

  // Ends the ranks and resets the session.
  void close();

 private:
  Session() = default;

  void check_not_running(const char* what) const;
  void start();
  void serve();
  void report(int64_t command, std::exception_ptr error, bool is_of_world);
  // Waits until all ranks have reported the end of the command. Returns whether all of them failed,
  // so that they can go on.
  bool have_all_failed(int64_t command, const std::exception_ptr& error);

  std::mutex caller_;  // one command at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t num_devices_ = 1;
  std::optional<uint64_t> seed_;
  std::vector<std::weak_ptr<const internal::Definition>> definitions_;
  std::thread driver_;  // runs the ranks' world
  bool is_running_ = false;
  bool is_closing_ = false;
  bool is_broken_ = false;  // a rank has ended with an error
  bool has_ended_ = false;  // all ranks have ended
  int64_t num_commands_ = 0;
  const std::function<void(RankJob&)>* command_ = nullptr;
  int64_t num_reported_ = 0;  // how many times a rank has reported the end of a command
  int64_t num_failed_ = 0;    // how many ranks have reported an error of the current command
  int64_t num_done_ = 0;      // how many times a rank has become ready for the next command
  std::exception_ptr error_;  // the first error of the command, or the error that ended the world
};

}  // namespace flow::job
