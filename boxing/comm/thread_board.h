// The board at which the thread ranks of one group meet: the data that each member publishes, and
// messages in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/comm/thread_world.h"

namespace flow::boxing {

// The data that a member publishes at one collective.
struct Shown {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  const int64_t* counts = nullptr;
  // True if others read the pointers above after this member was released, so that it must wait for
  // them at the end of the collective. False if everything that others read was copied to the
  // board.
  bool must_stay = false;
};

// A barrier over n threads that also lets them read what the others publish. Every member has two
// slots and alternates between them. A member may be one step ahead but never two, so it does not
// overwrite a slot that others read.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): written data has its own cache lines
class ThreadBoard {
 public:
  // Set in arrived_ after a member has withdrawn: the step will never be complete.
  static constexpr uint32_t kBroken = uint32_t{1} << 31;
  // Sources of up to this size are copied to the board.
  static constexpr int64_t kCopiedBytes = 1024;

  ThreadBoard(ThreadWorld& world, std::vector<int64_t> ranks);
  ~ThreadBoard();
  ThreadBoard(const ThreadBoard&) = delete;
  ThreadBoard& operator=(const ThreadBoard&) = delete;

  ThreadWorld& world() { return world_; }

  // One arrival of `member`: publishes `shown`, waits for all members and compares fingerprints.
  // Throws DistributedError on all members if these differ. The `bytes` bytes of shown.source are
  // copied to the board if they fit and nothing else is published.
  void meet(int64_t member, const Fingerprint& what, const Shown& shown, int64_t bytes);
  // Another arrival in the same collective. If the world has failed, throws only after no other
  // member reads what this one published.
  void meet_again(int64_t member, const Fingerprint& what);

  // What `peer` published at the last meet() of `member`.
  const Shown& shown(int64_t member, int64_t peer) const;
  bool anybody_must_stay(int64_t member) const;

  // A message whose other side has not arrived.
  struct Message;

  // The messages of one ordered pair of members.
  struct Mailbox {
    std::mutex mutex;
    // Guarded by mutex. For each tag, at most one of the two holds messages.
    std::deque<std::shared_ptr<Message>> sent;
    std::deque<std::shared_ptr<Message>> expected;
    int64_t buffered_bytes = 0;  // Communicator::kMostBufferedBytes bounds them
  };

  Mailbox& mailbox(int64_t from, int64_t to) {
    return mailboxes_[static_cast<size_t>(from * size_ + to)];
  }

 private:
  struct alignas(64) Place {
    std::atomic<uint64_t> arrivals{0};  // of this member, including meet_again
    std::atomic<bool> has_left{false};  // with an error: reads nothing, never arrives again
    uint64_t step = 0;                  // number of meet() calls of this member
    uint32_t generation = 0;            // at its last arrival
    std::array<uint64_t, 2> hashes{};
    std::array<Shown, 2> shown;
    std::array<Fingerprint, 2> marks;
    alignas(64) std::array<std::array<std::byte, kCopiedBytes>, 2> copies;
  };

  void arrive(int64_t member);
  // Throws only if this step will never be complete, so that no member continues with it.
  void wait_for_all(int64_t member, const Fingerprint& what);
  // Keeps a step from becoming complete after a failure; returns false if it is complete.
  bool withdraw(uint32_t generation);
  void stay_while_read(int64_t member);
  [[noreturn]] void leave(int64_t member, Site site);
  void compare(int64_t member, uint64_t hash);

  ThreadWorld& world_;
  std::vector<int64_t> ranks_;
  int64_t size_;
  std::unique_ptr<Place[]> places_;
  std::unique_ptr<Mailbox[]> mailboxes_;
  // One cache line that every member writes once per step.
  alignas(64) std::atomic<uint64_t> agreed_hash_{0};
  std::atomic<uint32_t> arrived_{0};  // arrivals at the current step, and kBroken
  alignas(64) std::atomic<uint32_t> generation_{0};
  WaitPoint released_;
};

}  // namespace flow::boxing
