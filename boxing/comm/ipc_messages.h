// Messages between processes that share a CUDA device: the sender copies into the memory of the
// receiver, by CUDA's handles of memory and events.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "boxing/comm/device_copy.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// What a rank tells another one that may share its device. It is sent as it is in memory, as all
// structs below are.
struct IpcOffer {
  bool shares = false;            // memory of the rank can be shared at all
  std::array<char, 16> device{};  // its UUID
};

IpcOffer ipc_offer(RankContext& rank);
// Whether both are on one device, so that they may try.
bool may_share(const IpcOffer& a, const IpcOffer& b);

// CUDA's handles of an allocation and of an event.
using IpcHandle = std::array<char, 64>;

// Where a message goes to in the receiver's memory, and after which event.
struct IpcTarget {
  IpcHandle memory{};
  int64_t offset = 0;  // bytes
  IpcHandle ready{};
};

// The end of a message, for the sender and for the receiver.
struct IpcCopy {
  DevicePointPtr end;
  IpcHandle done{};
};

// The handles that a rank shares and has opened. No call waits for the device. Used by one thread
// at a time.
class IpcMessages {
 public:
  virtual ~IpcMessages() = default;
  IpcMessages(const IpcMessages&) = delete;
  IpcMessages& operator=(const IpcMessages&) = delete;

  // Receiver: shows memory of the rank. Empty: it cannot be shared.
  virtual std::optional<IpcTarget> show(const CopyEnd& target) = 0;
  // Sender: queues the copy, after both sides are ready. Empty: CUDA does not open the receiver's
  // handles, and nothing is queued.
  virtual std::optional<IpcCopy> copy(const CopyEnd& source, int64_t bytes,
                                      const IpcTarget& target) = 0;
  // Receiver: the end of a copy that the sender has queued.
  virtual DevicePointPtr end_of(const IpcHandle& done) = 0;
  // An event of the rank is used again: the other side has let its stream wait for it, or will not.
  virtual void reuse(const IpcHandle& event) = 0;

 protected:
  IpcMessages() = default;
};

std::unique_ptr<IpcMessages> make_ipc_messages(RankContext& rank);

}  // namespace flow::boxing
