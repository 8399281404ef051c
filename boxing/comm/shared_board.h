// The shared memory in which the members of a group announce their arrivals at collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boxing/comm/shared_segment.h"

namespace flow::boxing {

// One member's view; used by one thread at a time. Every member has two slots and alternates
// between them. A member may be one step ahead but never two, so it does not overwrite a slot that
// others read.
class SharedBoard {
 public:
  // Makes the board of the group with the id `name`. An arrival carries up to `capacity` bytes.
  // Null if the segment has no room.
  static std::unique_ptr<SharedBoard> make(SharedSegment& segment, uint64_t name, int64_t size,
                                           int64_t position, int64_t capacity);

  // The number of arrivals of this member, including those before this object was made.
  uint64_t step() const { return step_; }

  // Announces the next arrival: a number that all members compare, a number for the member's own
  // use, and data.
  void arrive(uint64_t hash, int32_t tag, std::span<const std::byte> data);

  // True if `member` has arrived at this member's last step. The functions below may be called for
  // members that have arrived.
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
  // Small data is in the same cache line as the step number that announces it.
  struct alignas(64) Place {
    std::atomic<uint64_t> step;
    uint64_t hash;
    int32_t tag;
    int32_t bytes;
    std::byte data[40];  // continues up to the capacity
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
