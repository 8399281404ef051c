// Fails the world of a rank, and tells the rank of a failure, whatever kind of world it is.
#pragma once

#include <functional>

#include "boxing/comm/failure.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// What records a failure for all ranks of the world. It may be called from any thread, also after
// the rank has ended. It does nothing for a rank without running peers.
std::function<void(const Failure&)> world_failer(RankContext& context);

// What throws the world's failure on a thread of the rank, if the rank has not been told of it. It
// does nothing on a thread of another rank, and for a rank without running peers.
std::function<void()> world_teller(RankContext& context);

}  // namespace flow::boxing
