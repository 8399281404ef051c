// Where the members of a group that share a segment meet: each shows its arrivals to the others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boxing/comm/shared_segment.h"

namespace flow::boxing {

// One member's view, confined to one thread at a time. Every member has two places, used in turn: a
// member that is a step ahead never overwrites what others read, as it cannot be two ahead.
class SharedBoard {
 public:
  // Of the group that goes by `name`. An arrival shows up to `capacity` bytes. Null where the
  // segment has no room.
  static std::unique_ptr<SharedBoard> make(SharedSegment& segment, uint64_t name, int64_t size,
                                           int64_t position, int64_t capacity);

  // Arrivals of this member, also those before the board was made again.
  uint64_t step() const { return step_; }

  // The next arrival: a number that all compare, one for each member's own use, and data.
  void arrive(uint64_t hash, int32_t tag, std::span<const std::byte> data);

  // Of the last arrival of this member. The rest may be asked of members that have arrived.
  bool has_arrived(int64_t member) const {
    return place(member).step.load(std::memory_order_acquire) >= step_;
  }

  uint64_t hash(int64_t member) const { return place(member).hash; }

  int32_t tag(int64_t member) const { return place(member).tag; }

  std::span<const std::byte> data(int64_t member) const {
    const Place& shown = place(member);
    return {shown.data, static_cast<size_t>(shown.bytes)};
  }

 private:
  // Small data arrives with the cache line that says so.
  struct alignas(64) Place {
    std::atomic<uint64_t> step;
    uint64_t hash;
    int32_t tag;
    int32_t bytes;
    std::byte data[40];  // and on, up to the capacity
  };

  SharedBoard(std::byte* memory, int64_t place_bytes, int64_t position);

  Place& place(int64_t member) const { return place(member, step_ & 1); }

  Place& place(int64_t member, uint64_t side) const {
    return *reinterpret_cast<Place*>(memory_ +
                                     (2 * member + static_cast<int64_t>(side)) * place_bytes_);
  }

  std::byte* memory_;
  int64_t place_bytes_;
  int64_t position_;
  uint64_t step_;
};

}  // namespace flow::boxing
