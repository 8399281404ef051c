// One group of ranks that are processes: arrivals at collectives, and messages between members.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/comm/device_messages.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/shared_board.h"
#include "boxing/comm/shared_stage.h"

namespace flow::boxing {

// Used by one thread of its rank at a time, except receive().
class ProcessGroup final : public ProcessWorld::Receiver {
 public:
  // Data up to this size is sent with a member's arrival, and a few numbers in addition.
  static constexpr int64_t kInlineBytes = 1024;

  // `context` is null for a rank that has none yet; its messages are in host memory.
  ProcessGroup(ProcessWorld& world, std::vector<int64_t> ranks, int64_t position, Channel channel,
               RankContext* context);
  ~ProcessGroup() override;

  ProcessWorld& world() { return world_; }

  // Begins a collective: waits for all members and compares fingerprints. Throws DistributedError
  // on all members if these differ. Every member gets `data`, which may have kInlineBytes plus one
  // number per member.
  void meet(const Fingerprint& what, std::span<const std::byte> data);

  // The data that another member passed to the last meet().
  std::span<const std::byte> data_of(int64_t member) const;

  struct Part {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };

  // The shared memory in which members exchange data; null if they do not share memory.
  SharedStage* stage() const { return stage_.get(); }

  // Waits until is_ready(member) is true for all other members; for progress in shared memory.
  template <class IsReady>
  void wait_for_members(const IsReady& is_ready, const Fingerprint& what) {
    const auto are_ready = [&] {
      bool all = true;
      for (int64_t member = 0; member < size(); ++member)
        all &= member == position_ || is_ready(member);
      return all;
    };
    wait(are_ready, is_ready, what);
  }

  // Requires a meet() before it. Sends every other member its part of `sends` and receives the
  // parts of `receives`, both indexed by member. The caller's own parts are ignored.
  void exchange(std::span<const Part> sends, std::span<const Part> receives,
                const Fingerprint& what);

  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what);
  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag, const Fingerprint& what);
  void wait(Transfer transfer);

  void receive(int64_t from, ControlMessage message) override;

  bool advance() override { return devices_.advance(); }

 private:
  struct Expected;
  struct Sending;
  struct PendingSend;
  struct PendingReceive;

  struct Outgoing {
    int64_t peer = 0;
    const void* source = nullptr;
    int64_t bytes = 0;
    int64_t tag = 0;
    std::shared_ptr<DeviceSend> on_device = {};  // null: `source` is in host memory
  };

  struct Peer {
    std::deque<ControlMessage> arrivals;  // of later steps
    std::optional<ControlMessage> current;
    std::string description;          // the member's call; sent if fingerprints differ
    std::deque<ControlMessage> sent;  // messages without a matching receive
    std::vector<Expected*> expected;  // receives without a matching message
    // Flow control of buffered messages: how much may still be sent to the member before it
    // receives, the sends that wait for that, and how much was received since the last credit.
    int64_t credit = Communicator::kMostBufferedBytes;
    std::deque<std::shared_ptr<Sending>> deferred;
    int64_t taken = 0;
  };

  void post_arrivals(std::span<const std::byte> data);
  bool has_arrived(int64_t member);
  int32_t bulk_tag_of(int64_t member);
  int64_t find_disagreeing();

  // Waits until is_done(); members that are not ready are reported as missing.
  template <class IsDone, class IsReady>
  void wait(const IsDone& is_done, const IsReady& is_ready, const Fingerprint& what) {
    if (board_ && ProcessWorld::spin(is_done, num_spins_)) return;
    const auto missing = [&] {
      std::vector<int64_t> ranks;
      for (int64_t member = 0; member < size(); ++member) {
        if (member != position_ && !is_ready(member)) ranks.push_back(rank_of(member));
      }
      return ranks;
    };
    world_.wait(is_done, missing, what, num_spins_);
  }

  [[noreturn]] void throw_mismatch(const Fingerprint& what, int64_t other);
  void deliver(int64_t member, const ControlMessage& sent, Expected& expected);
  // The data of the message is on a device of its sender.
  void deliver_from_device(int64_t member, const ControlMessage& sent, Expected& expected);
  // Where data in host memory goes to.
  std::byte* host_target(Expected& expected) const;
  // Sends the message, or returns false if it is small and the member has no room for it. A large
  // one sets `bulk`.
  bool try_to_post(const Outgoing& message, const Fingerprint& what, std::unique_ptr<Bulk>& bulk);
  void post_deferred(int64_t member);
  // Tells the member that a buffered message of it was received.
  void give_credit(int64_t member, int64_t bytes);

  Peer& peer(int64_t member) { return peers_[static_cast<size_t>(member)]; }

  int64_t rank_of(int64_t member) const { return ranks_[static_cast<size_t>(member)]; }

  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }

  ProcessWorld& world_;
  std::vector<int64_t> ranks_;
  int64_t position_;
  uint64_t id_;
  int num_spins_;
  // Null if arrivals are sent as messages.
  std::unique_ptr<SharedBoard> board_;
  std::unique_ptr<SharedStage> stage_;
  uint64_t step_ = 0;
  uint64_t hash_ = 0;  // of the current step
  int32_t bulk_tag_ = 0;
  std::vector<Peer> peers_;  // guarded by the world's lock
  DeviceMessages devices_;   // as above
  std::vector<std::unique_ptr<Bulk>> bulks_;
};

}  // namespace flow::boxing
