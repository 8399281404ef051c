// What this process has to ask for again and again because nobody tells it, such as errors of NCCL
// in work that is queued.
#pragma once

#include <functional>
#include <memory>

namespace flow::boxing {

// Calls `ask` twice a second, on a thread that all share, until it returns a function or the object
// is destroyed. The destructor waits for a call that is running, so `ask` must not wait for
// anything. What it returns is called once, perhaps after the object has ended.
class Poll {
 public:
  using Answer = std::function<void()>;

  explicit Poll(std::function<Answer()> ask);
  ~Poll();
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

 private:
  struct One;
  struct All;
  static All& all();
  std::shared_ptr<One> one_;
};

}  // namespace flow::boxing
