// Ranks that exist for compiling only.
#pragma once

#include <cstdint>

#include "core/context.h"

namespace flow {

// While it lives, the calling thread is rank 0 of a world of so many ranks: tensors on their
// placements can be made and graphs compiled and certified for all of them, in one process. What
// would move data between ranks is an error. Tensors made meanwhile are rank 0's parts.
//
//   flow::PlanningWorld world(8);
//   Train graph(model, optimizer);
//   std::string text = graph.compile(x, y).summary();
class [[nodiscard]] PlanningWorld {
 public:
  explicit PlanningWorld(int64_t ranks);
  PlanningWorld(const PlanningWorld&) = delete;
  PlanningWorld& operator=(const PlanningWorld&) = delete;

 private:
  RankContext context_;
  RankScope scope_;
};

}  // namespace flow
