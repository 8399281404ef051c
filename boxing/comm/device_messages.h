// The messages of a group of processes whose data is in the memory of CUDA devices.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "boxing/comm/device_copy.h"
#include "boxing/comm/ipc_messages.h"
#include "boxing/comm/nccl_group.h"
#include "boxing/comm/process_world.h"
#include "core/storage.h"

namespace flow::boxing {

// A message that the rank sends. Guarded by the world's lock, as all below is.
struct DeviceSend {
  CopyEnd data;  // the caller's memory, or `buffer`
  int64_t bytes = 0;
  Ref<Storage> buffer = {};  // of a small message, on the device: its sender need not wait
  int64_t number = 0;        // among those to the member; 0: the member has not been told of it
  int32_t bulk_tag = 0;      // if it goes through host memory
  Ref<Storage> host = {};
  DevicePointPtr downloaded = {};  // the end of the copy to `host`
  std::unique_ptr<Bulk> bulk = {};
  DevicePointPtr end = {};  // null if it went through host memory
  bool is_done = false;
};

// What a rank tells of itself with each message. It is sent as it is in memory.
struct DeviceOffer {
  NcclOffer nccl;
  IpcOffer ipc;
};

// A receive of a message that comes by NCCL or IPC.
struct DeviceReceive {
  CopyEnd data;
  int64_t bytes = 0;
  DevicePointPtr end = {};
  bool is_sent = false;                          // the sender has queued its part
  IpcHandle shown = {};                          // by IPC: the event of `data`
  std::function<void()> receive_from_host = {};  // if the sender cannot use IPC

  bool is_done() const { return end != nullptr && is_sent; }
};

// Messages match on the host, by tag, as those of host memory do (ProcessGroup). Then the receiver
// decides how the data moves. Between ranks with a device each it goes by NCCL, on a communicator
// and a stream for each direction between two ranks:
//   the receiver queues its receive and tells the sender (kClear);
//   the sender queues its send and tells the receiver (kSent).
// So the messages of a direction have one order on both sides, whatever their tags are. A side
// waits until both have queued: later work, of any rank, depends only on work that is queued on all
// ranks that take part in it, and devices cannot wait for each other in a circle. The first message
// of a direction connects the two (kLink); if NCCL refuses on the sender's side, the sender answers
// so, and the messages go through host memory. All this happens while any thread of the process is
// in a function of the world, so a rank need not be in wait() for it.
//
// Between ranks that share a device it goes by IPC, with the same messages of the protocol:
//   the receiver shows its memory, and an event after which it may be written (kClear);
//   the sender queues the copy, and tells of an event at its end (kSent), or that CUDA does not
//   open the receiver's handles.
// Events are used again: that of the receiver with kSent, those of the sender when a later kClear
// says how many of them were taken.
//
// Otherwise the sender copies the data to pinned host memory, and sends it from there once it has
// arrived. No thread waits for a device while it holds the world's lock: work that waits for a rank
// that has ended would keep the process from learning of it.
class DeviceMessages {
 public:
  // `context` is null for a rank without devices.
  DeviceMessages(ProcessWorld& world, RankContext* context, uint64_t group,
                 std::vector<int64_t> ranks);
  ~DeviceMessages();
  DeviceMessages(const DeviceMessages&) = delete;
  DeviceMessages& operator=(const DeviceMessages&) = delete;

  RankContext& context() const { return *context_; }

  // Begins a message; a small one is copied to a buffer if there is room. Must be called without
  // the world's lock, the following functions with it.
  std::shared_ptr<DeviceSend> prepare(const void* source, int64_t bytes);

  // Numbers a message for `member`. Returns what the member must know of the rank.
  DeviceOffer announce(int64_t member, const std::shared_ptr<DeviceSend>& send);
  // The caller does not wait for it any more. If NCCL may still read its memory, the world fails.
  void forget(int64_t member, const DeviceSend& send);

  // Receives message `number` of a member by NCCL or IPC. False: the two ranks cannot.
  bool receive(int64_t member, int64_t number, const DeviceOffer& offer, DeviceReceive& receive);
  // Asks for message `number` through host memory.
  void ask_for_host(int64_t member, int64_t number);
  // The same for a receive, whose memory NCCL or the sender may still write.
  void forget(int64_t member, const DeviceReceive& receive);

  // Handles kLink, kClear and kSent.
  void handle(int64_t member, const ControlMessage& message);
  // Queues what can be queued. Returns true if something was.
  bool advance();

 private:
  using Outgoing = std::shared_ptr<DeviceSend>;
  using Incoming = std::pair<int64_t, DeviceReceive*>;

  struct Peer {
    // To the member.
    std::unique_ptr<NcclLink> out;
    int64_t num_announced = 0;
    std::map<int64_t, Outgoing> announced;  // by number; those that are not done
    std::deque<Outgoing> cleared;           // the first one may be on its way
    bool is_sending = false;
    // From the member.
    std::unique_ptr<NcclLink> in;
    bool is_refused = false;       // the two cannot connect
    std::deque<Incoming> matched;  // the first one may be on its way
    bool is_receiving = false;
    std::map<int64_t, DeviceReceive*> queued;  // by number: the sender may not have queued its part
    // By IPC.
    std::deque<IpcHandle> copied;  // the ends of messages to the member that it may not have taken
    int64_t num_reused = 0;        // of such ends
    int64_t num_taken = 0;         // of the ends of messages from the member
    bool is_unshared = false;      // the member cannot open the rank's handles
  };

  Peer& peer(int64_t member) { return peers_[static_cast<size_t>(member)]; }

  int64_t rank_of(int64_t member) const { return ranks_[static_cast<size_t>(member)]; }

  void tell(int64_t member, ControlHead::Kind kind, int64_t number, int64_t bytes,
            std::span<const std::byte> body = {});
  void begin_through_host(DeviceSend& send);
  // Sends what has arrived in host memory. Returns true if it did.
  bool advance_through_host(int64_t member, DeviceSend& send);
  bool receive_by_nccl(int64_t member, int64_t number, const NcclOffer& offer,
                       DeviceReceive& receive);
  bool receive_by_ipc(int64_t member, int64_t number, const IpcOffer& offer,
                      DeviceReceive& receive);
  void send_by_ipc(int64_t member, DeviceSend& send, const ControlMessage& clear);
  // The sender has queued its part of a message, or cannot.
  void end_receive(int64_t member, int64_t number, const ControlMessage& sent);
  IpcMessages& ipc();
  bool advance_sends(int64_t member);
  bool advance_receives(int64_t member);
  // The sender tells that NCCL has refused the connection on its side.
  void end_link(int64_t member);
  // Receives through host memory what waits for a connection that NCCL has refused.
  void give_up_link(int64_t member);
  void fail(const std::string& reason);
  // Calls `work`; an exception fails the world.
  template <class Work>
  bool guarded(const Work& work);

  ProcessWorld& world_;
  RankContext* context_;
  uint64_t group_;
  std::vector<int64_t> ranks_;
  std::vector<Peer> peers_;
  std::unique_ptr<IpcMessages> ipc_;  // null until it is needed
  // Buffers that queued sends read, and the bytes of all buffers.
  std::deque<std::pair<Ref<Storage>, DevicePointPtr>> leaving_;
  int64_t buffered_bytes_ = 0;
  // Host memory of messages that were dropped while it was written.
  std::deque<std::pair<Ref<Storage>, DevicePointPtr>> landing_;
};

}  // namespace flow::boxing
