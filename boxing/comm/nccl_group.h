// Transfers between ranks with distinct CUDA devices by NCCL, which is loaded at its first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boxing/comm/communicator.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The members of a group as NCCL's communicator, which never blocks: a call returns when its work
// is queued on the stream on which the calling thread queues. If the world fails, the communicator
// is aborted, and calls throw the DistributedError of `group`. Used by one thread at a time. Every
// member must make the same calls; the caller compares fingerprints before.
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Sends sends[i] to member i, and receives receives[i] from it. The own entries must be empty.
  virtual void exchange(std::span<const std::span<const std::byte>> sends,
                        std::span<const std::span<std::byte>> receives,
                        const Fingerprint& what) = 0;
  // Reduces in NCCL's order. False: NCCL has no such reduction, and nothing is done.
  virtual bool all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                          const Fingerprint& what) = 0;

 protected:
  NcclGroup() = default;
};

// Collective. All members get one, or all get null: because a member does not find NCCL or finds
// another version, because two members have one device, or because NCCL could not connect them.
std::unique_ptr<NcclGroup> make_nccl_group(RankContext& rank, Communicator& group,
                                           const Fingerprint& what);

}  // namespace flow::boxing
