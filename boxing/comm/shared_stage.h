// Shared memory in which the members of a group exchange data piece by piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "boxing/comm/shared_segment.h"

namespace flow::boxing {

// One member's view; used by one thread at a time. Pieces are numbered from 0 in each collective; a
// collective begins after all members have finished the one before. A member's piece passes two
// states: it is put and then, if that needs pieces of other members, completed.
class SharedStage {
 public:
  // Small enough that the pieces in use stay in the cores' caches.
  static constexpr int64_t kPieceBytes = 256 << 10;
  // Pieces per member. A member that completes piece i - 1 and takes piece i - 2 after it puts
  // piece i may do so once the others have put piece i - 2, because they have then taken piece i -
  // 5.
  static constexpr int64_t kPieces = 5;

  // Makes the stage of the group with the id `name`. Null if the segment has no room.
  static std::unique_ptr<SharedStage> make(SharedSegment& segment, uint64_t name, int64_t size,
                                           int64_t position);

  // The memory of a piece, kPieceBytes long.
  std::byte* piece(int64_t member, int64_t number) const {
    return pieces_ + (member * kPieces + number % kPieces) * kPieceBytes;
  }

  // Announces that this member's pieces up to `number` have reached the state.
  void set_put(int64_t number) { pass(own().num_put, number); }

  void set_completed(int64_t number) { pass(own().num_completed, number); }

  bool has_put(int64_t member, int64_t number) const {
    return has_passed(progress_[member].num_put, number);
  }

  bool has_completed(int64_t member, int64_t number) const {
    return has_passed(progress_[member].num_completed, number);
  }

  // Call it after a collective of `pieces` pieces.
  void finish(int64_t pieces) { num_before_ += static_cast<uint64_t>(pieces); }

 private:
  // Counts only grow, so nothing has to be reset between collectives.
  struct Progress {
    alignas(64) std::atomic<uint64_t> num_put;
    alignas(64) std::atomic<uint64_t> num_completed;
  };

  SharedStage(std::byte* memory, int64_t size, int64_t position);

  Progress& own() { return progress_[position_]; }

  void pass(std::atomic<uint64_t>& count, int64_t number) const {
    count.store(num_before_ + static_cast<uint64_t>(number) + 1, std::memory_order_release);
  }

  bool has_passed(const std::atomic<uint64_t>& count, int64_t number) const {
    return count.load(std::memory_order_acquire) > num_before_ + static_cast<uint64_t>(number);
  }

  Progress* progress_;
  std::byte* pieces_;
  int64_t position_;
  uint64_t num_before_;  // pieces of earlier collectives
};

}  // namespace flow::boxing
