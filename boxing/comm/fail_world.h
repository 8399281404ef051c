// Fails the world of a rank, whatever kind of world it is.
#pragma once

#include <functional>

#include "boxing/comm/failure.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// What records a failure for all ranks of the world. It may be called from any thread, also after
// the rank has ended. It does nothing for a rank that runs alone.
std::function<void(const Failure&)> world_failer(RankContext& context);

}  // namespace flow::boxing
