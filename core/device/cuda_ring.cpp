#include "core/device/cuda_ring.h"

#include "core/device/cuda_error.h"

namespace flow::cuda {

void PinnedRing::allocate() {
  if (slots_[0].memory == nullptr) {
    void* memory = nullptr;
    FLOW_CUDA_CALL(cudaMallocHost(&memory, kSlots * kSlotBytes));
    for (size_t i = 0; i < kSlots; ++i)
      slots_[i].memory = static_cast<std::byte*>(memory) + i * kSlotBytes;
  }
  for (Slot& slot : slots_) {
    if (slot.is_over != nullptr) continue;
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&slot.is_over, cudaEventDisableTiming));
  }
  current_ = 0;
  used_ = 0;
}

void PinnedRing::next_slot() {
  mark_slot();
  current_ = (current_ + 1) % kSlots;
  used_ = 0;
  FLOW_CUDA_CALL(cudaEventSynchronize(slots_[current_].is_over));  // at once if never recorded
}

std::byte* PinnedRing::reserve(size_t bytes) {
  constexpr size_t kUnit = 16;
  if (slots_.back().is_over == nullptr) allocate();
  if (used_ + bytes > kSlotBytes) next_slot();
  std::byte* const place = slots_[current_].memory + used_;
  used_ += (bytes + kUnit - 1) / kUnit * kUnit;
  return place;
}

std::byte* PinnedRing::reserve_slot() {
  return reserve(kSlotBytes);
}

void PinnedRing::send(std::byte* target, const std::byte* piece, size_t count) const {
  FLOW_CUDA_CALL(cudaMemcpyAsync(target, piece, count, cudaMemcpyHostToDevice, stream_));
}

void PinnedRing::receive(std::byte* piece, const void* source, size_t count) const {
  FLOW_CUDA_CALL(cudaMemcpyAsync(piece, source, count, cudaMemcpyDeviceToHost, stream_));
}

void PinnedRing::mark_slot() const {
  FLOW_CUDA_CALL(cudaEventRecord(slots_[current_].is_over, stream_));
}

void PinnedRing::take(size_t age, std::byte* target, size_t count) const {
  const Slot& slot = slots_[(current_ + kSlots + 1 - age) % kSlots];
  FLOW_CUDA_CALL(cudaEventSynchronize(slot.is_over));
  std::memcpy(target, slot.memory, count);
}

void PinnedRing::release() noexcept {
  const std::lock_guard lock(mutex_);
  if (slots_[0].memory == nullptr) return;
  warn_if_failed(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  warn_if_failed(cudaFreeHost(slots_[0].memory), "cudaFreeHost");
  for (Slot& slot : slots_) {
    if (slot.is_over != nullptr) warn_if_failed(cudaEventDestroy(slot.is_over), "cudaEventDestroy");
    slot = {};
  }
}

}  // namespace flow::cuda
