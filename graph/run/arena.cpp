#include "graph/run/arena.h"

#include "core/context.h"
#include "core/device/device_memory.h"

namespace flow::graph {

void Arena::reserve(RankContext& rank, DeviceType device, size_t bytes) {
  Ref<Storage>& block = blocks_[static_cast<size_t>(device)];
  if (bytes == 0 || (block && block->bytes() >= bytes)) return;
  block = {};  // before the larger one is allocated
  block = allocate_storage(rank, device, bytes);
}

std::byte* Arena::data(DeviceType device) const {
  const Ref<Storage>& block = blocks_[static_cast<size_t>(device)];
  return block ? block->data() : nullptr;
}

std::shared_ptr<CaptureMemory> Arena::capture_memory() {
  std::shared_ptr<CaptureMemory> memory = capture_memory_.lock();
  if (memory == nullptr) capture_memory_ = memory = std::make_shared<CaptureMemory>();
  return memory;
}

void Arena::trim(int64_t bytes) {
  for (Ref<Storage>& block : blocks_) {
    if (block && static_cast<int64_t>(block->bytes()) > bytes) block = {};
  }
}

}  // namespace flow::graph
