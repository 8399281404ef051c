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

}  // namespace flow::boxing
