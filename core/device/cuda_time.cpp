#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_time.h"

namespace flow {

namespace {
struct Event {
  int device;
  cudaEvent_t raw = nullptr;

  // Requires: the device is the calling thread's current one.
  explicit Event(int of) : device(of) {
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&raw, cudaEventDefault));
  }

  ~Event() {
    const cuda::OnDevice scope(device);
    cuda::warn_if_failed(cudaEventDestroy(raw), "cudaEventDestroy");
  }

  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

const Event& event_of(const std::shared_ptr<void>& event) {
  return *static_cast<const Event*>(event.get());
}

}  // namespace

DeviceMark DeviceMark::now(RankContext& rank) {
  const cuda::RankDevice& device = cuda::rank_device(rank);
  const cudaStream_t stream = device.stream();
  const auto event = std::make_shared<Event>(device.index());
  FLOW_CUDA_CALL(cudaEventRecord(event->raw, stream));
  DeviceMark mark;
  mark.event_ = event;
  return mark;
}

double DeviceMark::us_since(const DeviceMark& earlier) const {
  const Event& end = event_of(event_);
  const cuda::OnDevice scope(end.device);
  FLOW_CUDA_CALL(cudaEventSynchronize(end.raw));
  float milliseconds = 0;
  FLOW_CUDA_CALL(cudaEventElapsedTime(&milliseconds, event_of(earlier.event_).raw, end.raw));
  return 1e3 * static_cast<double>(milliseconds);
}

}  // namespace flow
