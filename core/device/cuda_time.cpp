#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_time.h"

namespace flow {

namespace {
cudaEvent_t event_of(const std::shared_ptr<void>& event) {
  return static_cast<cudaEvent_t>(event.get());
}
}  // namespace

DeviceMark DeviceMark::now(RankContext& rank) {
  const cudaStream_t stream = cuda::rank_device(rank).stream();
  cudaEvent_t event = nullptr;
  FLOW_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDefault));
  DeviceMark mark;
  mark.event_ = std::shared_ptr<void>(event, [](void* made) {
    cuda::warn_if_failed(cudaEventDestroy(static_cast<cudaEvent_t>(made)), "cudaEventDestroy");
  });
  FLOW_CUDA_CALL(cudaEventRecord(event, stream));
  return mark;
}

double DeviceMark::us_since(const DeviceMark& earlier) const {
  FLOW_CUDA_CALL(cudaEventSynchronize(event_of(event_)));
  float milliseconds = 0;
  FLOW_CUDA_CALL(cudaEventElapsedTime(&milliseconds, event_of(earlier.event_), event_of(event_)));
  return 1e3 * static_cast<double>(milliseconds);
}

}  // namespace flow
