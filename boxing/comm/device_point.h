// A point of the work on a stream; only for files that see CUDA's headers.
#pragma once

#include "boxing/comm/device_copy.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace flow::boxing {

struct DevicePoint {
  cudaStream_t stream;
  int device;
  cudaEvent_t event = nullptr;

  // Requires: the device is the calling thread's current one.
  DevicePoint(cudaStream_t on, int of) : stream(on), device(of) {
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    const cudaError_t recorded = cudaEventRecord(event, stream);
    if (recorded == cudaSuccess) return;
    cuda::warn_if_failed(cudaEventDestroy(event), "cudaEventDestroy");
    cuda::check(recorded, "cudaEventRecord");
  }

  // CUDA frees the event after it is reached.
  ~DevicePoint() {
    const cuda::OnDevice scope(device);
    cuda::warn_if_failed(cudaEventDestroy(event), "cudaEventDestroy");
  }

  DevicePoint(const DevicePoint&) = delete;
  DevicePoint& operator=(const DevicePoint&) = delete;
};

}  // namespace flow::boxing
