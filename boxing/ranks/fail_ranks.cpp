#include "boxing/ranks/fail_ranks.h"

#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_world.h"
#include "core/context.h"

namespace flow::boxing {

void fail_ranks(RankContext& context, const std::string& message) {
  if (context.world_size() == 1) return;
  const Failure failure{.rank = context.rank(), .message = message};
  if (const auto& threads = context.slot_ptr<ThreadWorld>()) return threads->fail(failure);
  const auto& hung = context.slot_ptr<ProcessWorld>();
  if (ProcessWorld* processes = hung ? hung.get() : process_world()) processes->fail(failure);
}

RankAway::RankAway(RankContext& context, const std::string& message) : context_(context) {
  if (const auto& threads = context.slot_ptr<ThreadWorld>()) {
    threads->leave(context.rank(), message);
  } else {
    fail_ranks(context, message);
  }
}

RankAway::~RankAway() {
  if (const auto& threads = context_.slot_ptr<ThreadWorld>()) threads->come_back(context_.rank());
}

}  // namespace flow::boxing
