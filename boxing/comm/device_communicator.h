// Exchanges of data in the memory of a CUDA device, among ranks that are threads of one process and
// use the same device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "boxing/comm/communicator.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// The members read each other's memory by its addresses. They meet on the host, as in any
// collective, so fingerprints are compared and failures found in the same way; events order the
// streams of the ranks, so the host waits for no work of the device. Used by one thread at a time.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  // What a member publishes; what it does not need is null.
  struct Part {
    const std::byte* source = nullptr;  // in device memory
    std::byte* target = nullptr;        // in device memory
    const int64_t* counts = nullptr;    // in host memory
  };

  // Collective. Returns what the members publish, in group order, valid until the next call. Work
  // that the rank queues from now on, on its compute stream, runs after all work that the members
  // had queued on theirs, so it may read their memory. If what.collective is set, members that call
  // different collectives get an error.
  virtual std::span<const Part> open(const Part& own, const Fingerprint& what) = 0;
  // Collective. Work that the rank queues from now on runs after what the other members had queued,
  // so it may overwrite or free what it published.
  virtual void close(const Fingerprint& what) = 0;

 protected:
  DeviceCommunicator() = default;
};

// A group has at most this many members.
inline constexpr int64_t kMostDeviceMembers = 64;

// That of `group` on this rank; the rank keeps it. Collective over the group at its first call: all
// members get one, or all get null, because they use several devices, cannot share memory or are
// too many.
DeviceCommunicator* device_communicator_for(RankContext& rank, Communicator& group,
                                            const Fingerprint& what);

}  // namespace flow::boxing
