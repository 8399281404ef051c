// Carries out a route between parts in the memory of CUDA devices.
#pragma once

#include "boxing/comm/communicator.h"
#include "boxing/rank_route.h"
#include "core/kernel.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The kernel of an op whose input and output are parts of a route, on cuda on every rank. Steps
// among ranks that share a device or have one each with NCCL read and write device memory, and the
// host waits for none of it; the other steps go through pinned host memory. Sums have the bits of
// the same route in host memory. The result has no function in builds without CUDA. The kernel may
// run on this rank only, in a thread of the channel.
KernelChoice bind_device_route(RankContext& context, const RankRoute& route, Channel channel);

}  // namespace flow::boxing
