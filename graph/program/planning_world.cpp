#include "graph/program/planning_world.h"

#include "boxing/comm/communicator.h"
#include "core/error.h"

namespace flow {

namespace {
RankIdentity first_of(int64_t ranks) {
  constexpr int64_t kMostRanks = 1 << 20;  // more are a mistake
  if (ranks < 1 || ranks > kMostRanks)
    throw InvalidArgument(str("[PlanningWorld] ", ranks, " ranks; give 1 to ", kMostRanks));
  return {.rank = 0, .world_size = ranks, .local_rank = 0, .node_rank = 0};
}
}  // namespace

PlanningWorld::PlanningWorld(int64_t ranks)
    : context_(first_of(ranks), 1), scope_(boxing::for_planning(context_)) {}

}  // namespace flow
