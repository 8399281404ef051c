// Exchanges between processes that share a CUDA device, by CUDA's handles of memory and events.
#pragma once

#include <memory>

#include "boxing/comm/communicator.h"
#include "boxing/comm/device_communicator.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Collective. All members get one, or all get null: because they are not processes of one device
// (by its UUID), because memory is not cached, or because a member cannot open what another one
// shares.
std::unique_ptr<DeviceCommunicator> make_ipc_communicator(RankContext& rank, Communicator& group,
                                                          const Fingerprint& what);

}  // namespace flow::boxing
