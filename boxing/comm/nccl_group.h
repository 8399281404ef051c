// Transfers between ranks with distinct CUDA devices by NCCL, which is loaded at its first use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "boxing/comm/communicator.h"
#include "boxing/comm/device_copy.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The members of a group as NCCL's communicator, which never blocks: a call returns when its work
// is queued on the stream on which the calling thread queues. If the world fails, the communicator
// is aborted, and calls throw the DistributedError of `group`. If NCCL fails in work that is
// queued, the world fails. Used by one thread at a time. Every member must make the same calls; the
// caller compares fingerprints before.
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Sends sends[i] to member i, and receives receives[i] from it. The own entries must be empty.
  virtual void exchange(std::span<const std::span<const std::byte>> sends,
                        std::span<const std::span<std::byte>> receives,
                        const Fingerprint& what) = 0;
  // Whether NCCL reduces elements of this dtype.
  virtual bool can_reduce(DType dtype) const = 0;
  // Reduces in NCCL's order. Requires: can_reduce(dtype).
  virtual void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                          const Fingerprint& what) = 0;

 protected:
  NcclGroup() = default;
};

// Collective. All members get one, or all get null: because a member does not find NCCL or finds
// another version, because two members have one device, or because NCCL could not connect them.
std::unique_ptr<NcclGroup> make_nccl_group(RankContext& rank, Communicator& group,
                                           const Fingerprint& what);

// ---- Messages in one direction between two ranks

// What a rank tells another one that may connect to it. It is sent as it is in memory.
struct NcclOffer {
  int version = 0;                // of NCCL; 0: it is missing
  std::array<char, 16> device{};  // its UUID
};

NcclOffer nccl_offer(RankContext& rank);
// Whether both have the same NCCL, and a device each.
bool can_connect(const NcclOffer& a, const NcclOffer& b);

// What both sides of a connection know. It is sent as it is in memory.
struct NcclInvitation {
  char id[128] = {};
};

// Empty if NCCL refuses, or is older than 2.27.
std::optional<NcclInvitation> invite();

// A communicator of NCCL for one direction between two ranks, with a stream of its own. It never
// blocks: a call returns at once, and is_idle() says when its work is queued. Used by one thread at
// a time.
class NcclLink {
 public:
  virtual ~NcclLink() = default;
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  // Whether NCCL found that it cannot connect the two, such as two slices of one GPU.
  virtual bool is_refused() = 0;
  // Whether the two are connected and the last call is queued; false also if the world has failed.
  // Throws DistributedError if NCCL has failed, but not for a receiver whose connection is refused:
  // it may receive in another way.
  virtual bool is_idle() = 0;
  // Requires for the following: is_idle(). A message is moved after `ready`.
  virtual void send(const std::byte* data, int64_t bytes, const DevicePoint& ready) = 0;
  virtual void receive(std::byte* target, int64_t bytes, const DevicePoint& ready) = 0;
  // The end of the messages so far.
  virtual DevicePointPtr end() = 0;

 protected:
  NcclLink() = default;
};

// Begins to connect with rank `peer`, which does the same with the same invitation.
std::unique_ptr<NcclLink> make_nccl_link(RankContext& rank, int64_t peer,
                                         const NcclInvitation& invitation, bool is_sender);

}  // namespace flow::boxing
