// Copies between host memory and a device through pinned memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>

#include <cuda_runtime.h>

namespace flow::cuda {

// Pinned memory of a few slots, which are used in turn. A copy passes through it in pieces of a
// slot at most, so that a piece is copied by the host while the device copies another. Small copies
// share a slot, so that the numbers of an optimizer's step need no waiting. Thread safe.
class PinnedRing {
 public:
#if defined(FLOW_CUDA_EMULATED)
  static constexpr size_t kSlotBytes = size_t{4} << 10;
#else
  static constexpr size_t kSlotBytes = size_t{1} << 20;
#endif

  explicit PinnedRing(cudaStream_t stream) : stream_(stream) {}

  ~PinnedRing() {
    release();
  }

  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Queues a copy on the stream; `source` may be changed when this returns. It waits only for slots
  // that earlier copies still use.
  void upload(void* target, const void* source, size_t bytes) {
    upload(target, bytes, [&](std::byte* piece, size_t first, size_t count) {
      std::memcpy(piece, static_cast<const std::byte*>(source) + first, count);
    });
  }

  // The same, with fill(piece, first, count) to write bytes [first, first + count) of what `target`
  // gets to the pinned `piece`. Pieces are multiples of 16 bytes, but for the last.
  template <class Fill>
  void upload(void* target, size_t bytes, const Fill& fill) {
    const std::lock_guard lock(mutex_);
    for (size_t first = 0; first < bytes; first += kSlotBytes) {
      const size_t count = std::min(kSlotBytes, bytes - first);
      std::byte* const piece = reserve(count);
      fill(piece, first, count);
      send(static_cast<std::byte*>(target) + first, piece, count);
    }
  }

  // Copies after the work that is queued on the stream; `target` holds the bytes when this returns.
  void download(void* target, const void* source, size_t bytes) {
    download(target, bytes, [&](std::byte* piece, size_t first, size_t count) {
      receive(piece, static_cast<const std::byte*>(source) + first, count);
    });
  }

  // The same, with queue(piece, first, count) to queue work on the stream that writes bytes
  // [first, first + count) of what `target` gets to the pinned `piece`.
  template <class Queue>
  void download(void* target, size_t bytes, const Queue& queue) {
    const std::lock_guard lock(mutex_);
    const size_t pieces = (bytes + kSlotBytes - 1) / kSlotBytes;
    for (size_t queued = 0, taken = 0; taken < pieces;) {
      if (queued < pieces && queued - taken < kSlots) {
        const size_t first = queued++ * kSlotBytes;
        const size_t count = std::min(kSlotBytes, bytes - first);
        queue(reserve_slot(), first, count);
        mark_slot();
      } else {
        const size_t first = taken * kSlotBytes;
        take(queued - taken, static_cast<std::byte*>(target) + first,
             std::min(kSlotBytes, bytes - first));
        ++taken;
      }
    }
  }

  // Queues the copy of a piece from the device.
  void receive(std::byte* piece, const void* source, size_t count) const;

  // Frees the pinned memory and the events after the copies; the next copy makes new ones.
  void release() noexcept;

 private:
  static constexpr size_t kSlots = 4;

  struct Slot {
    std::byte* memory = nullptr;
    cudaEvent_t is_over = nullptr;  // what was queued with the memory
  };

  // Requires for all: mutex_ is locked.
  void allocate();
  void next_slot();
  // Returns pinned memory that no copy uses.
  std::byte* reserve(size_t bytes);
  std::byte* reserve_slot();
  void send(std::byte* target, const std::byte* piece, size_t count) const;
  void mark_slot() const;
  // Waits for the work with the slot reserved as the `age`-th last, and copies its bytes.
  void take(size_t age, std::byte* target, size_t count) const;

  const cudaStream_t stream_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::array<Slot, kSlots> slots_;
  size_t current_ = 0;
  size_t used_ = 0;  // bytes of the current slot
};

}  // namespace flow::cuda
