#include "core/device/cuda_upload.h"

#include <cstring>

#include "core/device/cuda_error.h"

namespace flow::cuda {

void UploadRing::allocate() {
  void* memory = nullptr;
  FLOW_CUDA_CALL(cudaMallocHost(&memory, 2 * kHalfBytes));
  for (Half& half : halves_) {
    half.memory = static_cast<std::byte*>(memory) + (&half - halves_) * kHalfBytes;
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&half.is_read, cudaEventDisableTiming));
  }
}

void UploadRing::copy(void* target, const void* source, size_t bytes) {
  constexpr size_t kUnit = 16;
  const std::lock_guard lock(mutex_);
  if (halves_[0].memory == nullptr) allocate();
  if (used_ + bytes > kHalfBytes) {
    FLOW_CUDA_CALL(cudaEventRecord(halves_[current_].is_read, stream_));
    current_ = 1 - current_;
    used_ = 0;
    FLOW_CUDA_CALL(cudaEventSynchronize(halves_[current_].is_read));  // at once if never recorded
  }
  std::byte* const place = halves_[current_].memory + used_;
  std::memcpy(place, source, bytes);
  FLOW_CUDA_CALL(cudaMemcpyAsync(target, place, bytes, cudaMemcpyHostToDevice, stream_));
  used_ += (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace flow::cuda
