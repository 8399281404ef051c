// The ranks that run jobs: threads that wait for commands of a caller that is no rank.
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

// One a process, never destroyed: at the end of the process its ranks wait for a command that does
// not come. Thread safe.
class Session {
 public:
  static Session& get();

  // Both throw InvalidArgument once ranks run.
  void set_device_num(std::string_view device, int64_t count);
  void set_seed(uint64_t seed);

  // Numbers a function.
  void add(const std::shared_ptr<internal::Definition>& definition);
  // Of the functions that exist, in order.
  std::vector<std::shared_ptr<const internal::Definition>> definitions() const;

  int64_t num_devices() const;

  // Runs `command` on every rank, which it starts at the first; returns when all have ended it.
  // Throws the first exception of a rank. When only some ranks throw, the others are told and the
  // session is over: every later command throws.
  void run(const std::function<void(RankJob&)>& command);

  // Ends the ranks.
  void close();

 private:
  Session() = default;

  void check_not_running(const char* what) const;
  void start();
  void serve();
  void report(int64_t command, std::exception_ptr error, bool is_of_world);

  std::mutex caller_;  // one command at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t num_devices_ = 1;
  std::optional<uint64_t> seed_;
  std::vector<std::weak_ptr<const internal::Definition>> definitions_;
  std::thread driver_;  // of the ranks' world
  bool is_running_ = false;
  bool is_closing_ = false;
  bool is_broken_ = false;  // a rank has left with an error
  bool has_ended_ = false;  // all ranks have left
  int64_t num_commands_ = 0;
  const std::function<void(RankJob&)>* command_ = nullptr;
  int64_t num_done_ = 0;      // ranks that have ended the command
  std::exception_ptr error_;  // the first of the command's, or what ended the world
};

}  // namespace flow::job
