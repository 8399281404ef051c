#include "nn/graphs/call_turns.h"

#include "core/context.h"
#include "core/error.h"

namespace flow::nn {

void CallTurns::begin() {
  const RankContext* rank = thread_state().context;
  const std::thread::id thread = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return depth_ == 0 || thread_ == thread || rank_ != rank; });
  if (depth_ > 0 && rank_ != rank) {
    throw InvalidArgument(
        "[graph] two ranks call one graph object at the same time, but its plans and its memory "
        "belong to one rank; make the graph in the function that each rank runs");
  }
  ++depth_;
  thread_ = thread;
  rank_ = rank;
}

void CallTurns::end() {
  const std::lock_guard lock(mutex_);
  if (--depth_ == 0) ended_.notify_all();
}

}  // namespace flow::nn
