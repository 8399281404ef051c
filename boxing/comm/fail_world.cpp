#include "boxing/comm/fail_world.h"

#include <memory>

#include "boxing/comm/communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_world.h"
#include "core/context.h"

namespace flow::boxing {

std::function<void(const Failure&)> world_failer(RankContext& context) {
  if (!has_running_peers(context)) return [](const Failure& /*failure*/) {};
  if (const auto& threads = context.slot_ptr<ThreadWorld>())
    return [threads](const Failure& failure) { threads->fail(failure); };
  if (const auto& hung = context.slot_ptr<ProcessWorld>())
    return [hung](const Failure& failure) { hung->fail(failure); };
  return [processes = process_world()](const Failure& failure) { processes->fail(failure); };
}

std::function<void()> world_teller(RankContext& context) {
  // A thread of a later world may ask, where the first one has ended.
  const auto in_world = []<class World>(const std::shared_ptr<World>& world) {
    return [world] {
      if (thread_state().context->slot_ptr<World>() == world) world->tell();
    };
  };
  if (!has_running_peers(context)) return [] {};
  if (const auto& threads = context.slot_ptr<ThreadWorld>()) return in_world(threads);
  if (const auto& hung = context.slot_ptr<ProcessWorld>()) return in_world(hung);
  return [processes = process_world()] { processes->tell(); };
}

}  // namespace flow::boxing
