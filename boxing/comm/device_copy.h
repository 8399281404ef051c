// Copies between ranks of one process whose data may be in the memory of CUDA devices. The host
// waits for no work of a device, except where one side is host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  DevicePointPtr ready = {};  // on a stream of the rank; null: host memory
};

// What was queued on the stream on which the calling thread queues: the compute stream of the rank,
// or its communication stream. Throws Unsupported in builds without CUDA, as the other functions
// do.
DevicePointPtr queued_work(RankContext& rank);

// Queues a copy on the copy stream of `rank`, after the points of both ends. At least one
// of them is on a device. Returns the end of the copy; null: host memory took part, and the copy
// has ended.
DevicePointPtr copy_after(RankContext& rank, const CopyEnd& target, const CopyEnd& source,
                          int64_t bytes);
// The same to pinned host memory, but waits for nothing: the target has the bytes when the end is
// reached.
DevicePointPtr begin_download(RankContext& rank, std::byte* target, const CopyEnd& source,
                              int64_t bytes);

// Whether the work before the point has ended.
bool is_reached(const DevicePoint& point);

// Work that is queued from now on, on the stream on which `at` is, waits until `point` is reached.
void order_after(const DevicePoint& at, const DevicePoint& point);
// The same for the stream on which the calling thread queues.
void order_after(RankContext& rank, const DevicePoint& point);

// The same for the end of a transfer, whether or not somebody waits for it: later work may use its
// memory. Does nothing for null; for destructors.
void order_after_transfer(RankContext& rank, const DevicePointPtr& end) noexcept;

// Runs `task`; what it queues on the device of `rank` goes to the communication stream, after
// `begin`. Sets `end` to the end of this work, also if the task throws.
void run_on_communication_stream(RankContext& rank, const DevicePoint& begin,
                                 const std::function<void()>& task, DevicePointPtr& end);

}  // namespace flow::boxing
