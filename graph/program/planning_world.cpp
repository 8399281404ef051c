#include "graph/program/planning_world.h"

#include "core/error.h"

namespace flow {

namespace {
RankIdentity first_of(int64_t ranks) {
  if (ranks < 1) throw InvalidArgument(str("[PlanningWorld] ", ranks, " ranks; give at least 1"));
  return {.rank = 0, .world_size = ranks, .local_rank = 0, .node_rank = 0};
}
}  // namespace

PlanningWorld::PlanningWorld(int64_t ranks) : context_(first_of(ranks), 1), scope_(context_) {}

}  // namespace flow
