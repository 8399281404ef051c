// Where the thread ranks of one group meet: what each shows to the others, and messages in flight.
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

// What a member shows at one collective.
struct Shown {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  const int64_t* counts = nullptr;
  // Whether others read the pointers above after this member was released, so that it must wait
  // for them at the end. False where all that is read was copied to the board.
  bool must_stay = false;
};

// A barrier over n threads that also lets them look at what the others show. Every step has two
// sets of places, used in turn: a member that is a step ahead never overwrites what others read, as
// it cannot be two ahead.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what all write has lines of its own
class ThreadBoard {
 public:
  // In arrived_ after a member has withdrawn: the step will never be complete.
  static constexpr uint32_t kBroken = uint32_t{1} << 31;
  // Sources up to this size are copied to the board.
  static constexpr int64_t kCopiedBytes = 1024;

  ThreadBoard(ThreadWorld& world, std::vector<int64_t> ranks);
  ~ThreadBoard();
  ThreadBoard(const ThreadBoard&) = delete;
  ThreadBoard& operator=(const ThreadBoard&) = delete;

  ThreadWorld& world() { return world_; }

  // One arrival of `member`: shows, waits for all, compares fingerprints. Throws DistributedError
  // on all members when they differ. `bytes` of shown.source are copied to the board when they fit
  // and nothing else is shown.
  void meet(int64_t member, const Fingerprint& what, const Shown& shown, int64_t bytes);
  // A further arrival within the same collective. Throws the failure of the world only when no
  // other member reads any more what this one showed.
  void meet_again(int64_t member, const Fingerprint& what);

  // What `peer` showed at the last meet() of the calling member.
  const Shown& shown(int64_t member, int64_t peer) const;
  bool anybody_must_stay(int64_t member) const;

  // A message that waits for its other half.
  struct Message;

  // Messages of one ordered pair of members.
  struct Mailbox {
    std::mutex mutex;
    // Guarded by mutex; at most one of them holds messages of a tag.
    std::deque<std::shared_ptr<Message>> sent;
    std::deque<std::shared_ptr<Message>> expected;
  };

  Mailbox& mailbox(int64_t from, int64_t to) {
    return mailboxes_[static_cast<size_t>(from * size_ + to)];
  }

 private:
  struct alignas(64) Place {
    std::atomic<uint64_t> arrivals{0};  // of this member, meet_again included
    std::atomic<bool> has_left{false};  // with an error: it reads nothing and does not come again
    uint64_t step = 0;                  // of this member: meet() calls
    uint32_t generation = 0;            // at its last arrival
    std::array<uint64_t, 2> hashes{};
    std::array<Shown, 2> shown;
    std::array<Fingerprint, 2> marks;
    alignas(64) std::array<std::array<std::byte, kCopiedBytes>, 2> copies;
  };

  void arrive(int64_t member);
  // Throws only when this step will never be complete, so that nobody goes on with it.
  void wait_for_all(int64_t member, const Fingerprint& what);
  // Keeps a step from becoming complete, after a failure; false when it is.
  bool withdraw(uint32_t generation);
  void stay_while_read(int64_t member);
  [[noreturn]] void leave(int64_t member, Site site);
  void compare(int64_t member, uint64_t hash);

  ThreadWorld& world_;
  std::vector<int64_t> ranks_;
  int64_t size_;
  std::unique_ptr<Place[]> places_;
  std::unique_ptr<Mailbox[]> mailboxes_;
  // One cache line that all write once a step.
  alignas(64) std::atomic<uint64_t> agreed_hash_{0};
  std::atomic<uint32_t> arrived_{0};  // of a step, and kBroken
  alignas(64) std::atomic<uint32_t> generation_{0};
  WaitPoint released_;
};

}  // namespace flow::boxing
