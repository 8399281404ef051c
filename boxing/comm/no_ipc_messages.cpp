// Replaces ipc_messages.cpp in builds without CUDA.
#include "boxing/comm/ipc_messages.h"
#include "core/error.h"

namespace flow::boxing {

IpcOffer ipc_offer(RankContext& /*rank*/) {
  return {};
}

bool may_share(const IpcOffer& /*a*/, const IpcOffer& /*b*/) {
  return false;
}

std::unique_ptr<IpcMessages> make_ipc_messages(RankContext& /*rank*/) {
  throw InternalError("[communicator] messages of a device in a build without CUDA");
}

}  // namespace flow::boxing
