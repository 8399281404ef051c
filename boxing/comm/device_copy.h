// Copies between ranks of one process whose data may be in the memory of CUDA devices. The host
// waits for no work of a device, except where one side is host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace flow {
class RankContext;
}

namespace flow::boxing {

// A point of the work that is queued on a stream of a device.
struct DevicePoint;
using DevicePointPtr = std::shared_ptr<const DevicePoint>;

// Memory of a rank, for a copy.
struct CopyEnd {
  std::byte* data = nullptr;
  DevicePointPtr ready = {};  // on the compute stream of the rank; null: host memory
};

// What the rank has queued on its compute stream. Throws Unsupported in builds without CUDA, as the
// other functions do.
DevicePointPtr queued_work(RankContext& rank);

// Queues a copy on the communication stream of `rank`, after the points of both ends. At least one
// of them is on a device. Returns the end of the copy; null: host memory took part, and the copy
// has ended.
DevicePointPtr copy_after(RankContext& rank, const CopyEnd& target, const CopyEnd& source,
                          int64_t bytes);

// Work that is queued from now on, on the stream on which `at` is, waits until `point` is reached.
void order_after(const DevicePoint& at, const DevicePoint& point);
// The same for the compute stream of `rank`.
void order_after(RankContext& rank, const DevicePoint& point);

}  // namespace flow::boxing
