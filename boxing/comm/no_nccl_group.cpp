// Replaces nccl_group.cpp in builds without NCCL's header.
#include "boxing/comm/nccl_group.h"
#include "core/error.h"

namespace flow::boxing {

std::unique_ptr<NcclGroup> make_nccl_group(RankContext& /*rank*/, Communicator& /*group*/,
                                           const Fingerprint& /*what*/) {
  return nullptr;
}

NcclOffer nccl_offer(RankContext& /*rank*/) {
  return {};
}

bool can_connect(const NcclOffer& /*a*/, const NcclOffer& /*b*/) {
  return false;
}

std::optional<NcclInvitation> invite() {
  return {};
}

std::unique_ptr<NcclLink> make_nccl_link(RankContext& /*rank*/, int64_t /*peer*/,
                                         const NcclInvitation& /*invitation*/, bool /*is_sender*/) {
  throw InternalError("[nccl] a connection in a build without NCCL");
}

}  // namespace flow::boxing
