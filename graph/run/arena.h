// The memory in which programs run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/device/device_graph.h"
#include "core/storage.h"

namespace flow {
class RankContext;
}

namespace flow::graph {

// A block of memory on each device. Programs that run one after another share it; it is as large as
// the largest of them needs. It holds nothing between runs. Not thread safe.
class Arena {
 public:
  // Makes the block on a device at least so large. It may then be somewhere else.
  void reserve(RankContext& rank, DeviceType device, size_t bytes);

  // The block on a device; null if there is none.
  std::byte* data(DeviceType device) const;

  // The memory that the programs take when they are captured as CUDA graphs. It is freed when
  // nobody has it any more.
  std::shared_ptr<CaptureMemory> capture_memory();

  // Frees blocks that are larger than `bytes`.
  void trim(int64_t bytes);

 private:
  std::array<Ref<Storage>, 2> blocks_;  // by device
  std::weak_ptr<CaptureMemory> capture_memory_;
};

}  // namespace flow::graph
