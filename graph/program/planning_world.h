// Worlds of ranks that exist only for compiling.
#pragma once

#include <cstdint>

#include "core/context.h"

namespace flow {

// While it lives, the calling thread is rank 0 of a world with this number of ranks. Tensors can be
// made on placements of these ranks, and graphs can be compiled and certified for all of them in
// one process. An op that would move data between ranks throws an error. Tensors made meanwhile
// hold rank 0's part.
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
