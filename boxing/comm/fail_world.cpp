#include "boxing/comm/fail_world.h"

#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_world.h"
#include "core/context.h"

namespace flow::boxing {

std::function<void(const Failure&)> world_failer(RankContext& context) {
  if (context.world_size() == 1) return [](const Failure& /*failure*/) {};
  if (const auto& threads = context.slot_ptr<ThreadWorld>())
    return [threads](const Failure& failure) { threads->fail(failure); };
  if (const auto& hung = context.slot_ptr<ProcessWorld>())
    return [hung](const Failure& failure) { hung->fail(failure); };
  return [processes = process_world()](const Failure& failure) {
    if (processes != nullptr) processes->fail(failure);
  };
}

}  // namespace flow::boxing
