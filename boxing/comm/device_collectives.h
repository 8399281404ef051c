// Collectives and messages of data in the memory of CUDA devices.
#pragma once

#include "boxing/comm/communicator.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The communicator of the same group whose buffers are on this rank's device; the rank keeps it. A
// call reads what the calling thread has queued before, and its results are ordered with what it
// queues later, on the same stream. Members that share a device read each other's memory
// (boxing/comm/device_communicator.h), those with a device each use NCCL
// (boxing/comm/nccl_group.h), and the host waits for no work of a device; data of the others goes
// through pinned host memory. Messages between ranks of one process are copied from device to
// device (boxing/comm/device_copy.h); between processes they go as boxing/comm/device_messages.h
// says. Sums have the bits of host memory, unless FLOW_FAST_REDUCE is 1 and NCCL adds. Its open()
// and all_to_all_packed() are not available. Throws Unsupported in builds without CUDA.
Communicator& device_collectives_for(RankContext& rank, Communicator& group);

// Whether the collectives of the group do not pass through host memory: the same on all members,
// and collective at the first call.
bool stays_on_devices(RankContext& rank, Communicator& group, const Fingerprint& what);

}  // namespace flow::boxing
