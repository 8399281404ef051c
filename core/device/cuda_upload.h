// Copies of few bytes from host memory to a device, for which the caller does not wait.
#pragma once

#include <cstddef>
#include <mutex>

#include <cuda_runtime.h>

namespace flow::cuda {

// Pinned memory through which small copies pass, such as the numbers of an optimizer's step. It has
// two halves; a half is used again after the copies out of it have finished. Thread safe.
class UploadRing {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 10;  // of one copy

  explicit UploadRing(cudaStream_t stream) : stream_(stream) {}

  UploadRing(const UploadRing&) = delete;
  UploadRing& operator=(const UploadRing&) = delete;

  // Queues a copy on the stream; `source` may be changed when this returns. Requires: bytes is at
  // most kMostBytes.
  void copy(void* target, const void* source, size_t bytes);

 private:
  static constexpr size_t kHalfBytes = size_t{256} << 10;

  struct Half {
    std::byte* memory = nullptr;
    cudaEvent_t is_read = nullptr;
  };

  void allocate();

  const cudaStream_t stream_;
  std::mutex mutex_;
  // Guarded by mutex_.
  Half halves_[2];
  int current_ = 0;
  size_t used_ = 0;  // bytes of the current half
};

}  // namespace flow::cuda
