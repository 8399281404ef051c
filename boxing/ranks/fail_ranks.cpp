#include "boxing/ranks/fail_ranks.h"

#include "boxing/comm/fail_world.h"
#include "boxing/comm/thread_world.h"
#include "core/context.h"

namespace flow::boxing {

void fail_ranks(RankContext& context, const std::string& message) {
  world_failer(context)({.rank = context.rank(), .message = message});
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
