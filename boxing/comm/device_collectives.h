// Collectives and messages of data in the memory of CUDA devices.
#pragma once

#include "boxing/comm/communicator.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The communicator of the same group whose buffers are on this rank's device; the rank keeps it. A
// call reads what the rank has queued before on its compute stream, and its results are ordered on
// that stream: the caller may use the buffers in work that it queues later. Members that share a
// device read each other's memory (boxing/comm/device_communicator.h) and wait for no work of the
// device; data of the others, and all messages, go through pinned host memory. Sums have the bits
// of host memory. Its open() and all_to_all_packed() are not available. Throws Unsupported in
// builds without CUDA.
Communicator& device_collectives_for(RankContext& rank, Communicator& group);

}  // namespace flow::boxing
