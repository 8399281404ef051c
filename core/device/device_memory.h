// Memory operations that work for every device type.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/kernel.h"
#include "core/site.h"
#include "core/storage.h"
#include "core/tensor_impl.h"

namespace flow {

class RankContext;

namespace cuda {
class DeviceAllocator;
}

// Returns uninitialised bytes in host memory or on the rank's CUDA device. Throws OutOfMemory, or
// Unsupported for cuda if there is no device.
Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes);

// Returns host memory that CUDA copies to and from directly (pinned); plain host memory in builds
// without CUDA. Requires: work that uses the memory has finished before it is freed.
Ref<Storage> allocate_staging(RankContext& rank, size_t bytes);

// Copies after the work that the rank has queued before. Returns when `source` may be changed and,
// if `target` is host memory, when `target` holds the bytes. The source may be in the memory of
// another device than the rank's; see OthersMemory.
void copy_bytes(RankContext& rank, void* target, DeviceType target_device, const void* source,
                DeviceType source_device, size_t bytes);

// True for a tensor in the memory of another CUDA device than the rank's.
bool is_elsewhere(RankContext& rank, const TensorImpl& tensor);

// True for a tensor in the device memory of another rank.
bool is_of_other_rank(RankContext& rank, const TensorImpl& tensor);

// Memory that was taken on the communication stream, as memory of the calling thread's stream,
// which waits for it already: later work on the communication stream waits for what uses it when it
// is freed. Other memory is returned as it is.
Ref<Storage> taken_over(RankContext& rank, Ref<Storage> memory);

// Device memory of other ranks that a call uses. While an object of this class exists, the rank
// queues work that uses the memory. This work waits for what the owners have queued before; what
// they queue later, also with the freed memory, waits for this work.
class OthersMemory {
 public:
  // kAnywhere: the call only copies from it, or reads it on the host.
  enum class Where { kHere, kAnywhere };

  explicit OthersMemory(RankContext& rank) : rank_(rank) {}

  ~OthersMemory() {
    if (!owners_.empty()) release();
  }

  OthersMemory(const OthersMemory&) = delete;
  OthersMemory& operator=(const OthersMemory&) = delete;

  // Does nothing for host memory and for the rank's own. For kHere, throws InvalidArgument if it is
  // memory of another device than the rank's, which kernels cannot use.
  void add(const TensorImpl& tensor, const char* op, Site site, Where where = Where::kHere) {
    if (tensor.meta->device != DeviceType::kCpu && tensor.storage) order(tensor, op, site, where);
  }

 private:
  void order(const TensorImpl& tensor, const char* op, Site site, Where where);
  void release() noexcept;

  RankContext& rank_;
  const cuda::DeviceAllocator* own_ = nullptr;
  std::vector<const cuda::DeviceAllocator*> owners_;
};

// Accepts "cpu", "cuda", "gpu" and a numbered device such as "cuda:1". A number selects the rank's
// device if the rank has not used one yet (cuda::set_device). Throws InvalidArgument for any other
// text, and if the number is not that of the rank's device.
DeviceType use_device(std::string_view name);

// The number of elements from the first to the last element of this rank's part in memory.
int64_t extent_of(const TensorMeta& meta);
// The bytes of the same stretch of memory.
size_t bytes_spanned(const TensorMeta& meta);

// Whether two parts do not overlap that begin at these offsets, in elements, of one memory. The
// elements between those of a part count as its own.
bool are_apart(const TensorMeta& a, int64_t a_offset, const TensorMeta& b, int64_t b_offset);

// A copy in host memory of this rank's part, including the memory between its elements.
Ref<Storage> host_copy(RankContext& rank, const TensorView& view);

// Calls `kernel`, a kernel for host memory, with host copies of the call's operands that are on a
// device.
void run_on_host(const KernelContext& ctx, KernelFn kernel);

// Blocks until the work that the rank has queued on `device` is done; does nothing for the host.
void synchronize_device(RankContext& rank, DeviceType device);

}  // namespace flow
