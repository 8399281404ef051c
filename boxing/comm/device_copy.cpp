#include "boxing/comm/device_copy.h"

#include <exception>

#include "boxing/comm/device_point.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

DevicePointPtr queued_work(RankContext& rank) {
  const cuda::RankDevice& own = cuda::rank_device(rank);
  return std::make_shared<const DevicePoint>(own.stream(), own.index());
}

DevicePointPtr copy_after(RankContext& rank, const CopyEnd& target, const CopyEnd& source,
                          int64_t bytes) {
  const cuda::RankDevice& own = cuda::rank_device(rank);
  const cudaStream_t stream = own.copy_stream();
  for (const CopyEnd* end : {&target, &source}) {
    if (end->ready != nullptr) FLOW_CUDA_CALL(cudaStreamWaitEvent(stream, end->ready->event, 0));
  }
  const auto size = static_cast<size_t>(bytes);
  const bool is_within_devices = target.ready != nullptr && source.ready != nullptr;
  if (is_within_devices && target.ready->device != source.ready->device) {
    if (bytes > 0) {
      FLOW_CUDA_CALL(cudaMemcpyPeerAsync(target.data, target.ready->device, source.data,
                                         source.ready->device, size, stream));
    }
  } else if (bytes > 0) {
    FLOW_CUDA_CALL(cudaMemcpyAsync(target.data, source.data, size, cudaMemcpyDefault, stream));
  }
  if (is_within_devices) return std::make_shared<const DevicePoint>(stream, own.index());
  FLOW_CUDA_CALL(cudaStreamSynchronize(stream));
  return nullptr;
}

DevicePointPtr begin_download(RankContext& rank, std::byte* target, const CopyEnd& source,
                              int64_t bytes) {
  const cuda::RankDevice& own = cuda::rank_device(rank);
  const cudaStream_t stream = own.copy_stream();
  FLOW_CUDA_CALL(cudaStreamWaitEvent(stream, source.ready->event, 0));
  if (bytes > 0) {
    FLOW_CUDA_CALL(cudaMemcpyAsync(target, source.data, static_cast<size_t>(bytes),
                                   cudaMemcpyDeviceToHost, stream));
  }
  return std::make_shared<const DevicePoint>(stream, own.index());
}

bool is_reached(const DevicePoint& point) {
  cuda::check(cuda::set_current(point.device), "cudaSetDevice");
  const cudaError_t state = cudaEventQuery(point.event);
  if (state != cudaErrorNotReady) cuda::check(state, "cudaEventQuery");
  return state == cudaSuccess;
}

void order_after(const DevicePoint& at, const DevicePoint& point) {
  FLOW_CUDA_CALL(cudaStreamWaitEvent(at.stream, point.event, 0));
}

void order_after(RankContext& rank, const DevicePoint& point) {
  FLOW_CUDA_CALL(cudaStreamWaitEvent(cuda::rank_device(rank).stream(), point.event, 0));
}

void order_after_transfer(RankContext& rank, const DevicePointPtr& end) noexcept {
  if (end == nullptr) return;
  try {
    order_after(rank, *end);
  } catch (const std::exception& error) {
    log_warning(str("[communicator] work after a transfer may run too early: ", error.what()));
  }
}

void run_on_communication_stream(RankContext& rank, const DevicePoint& begin,
                                 const std::function<void()>& task, DevicePointPtr& end) {
  const cuda::OnCommunicationStream scope;
  order_after(rank, begin);
  std::exception_ptr failure;
  try {
    task();
  } catch (...) {  // is rethrown: what the task has queued still uses its memory
    failure = std::current_exception();
  }
  end = queued_work(rank);
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace flow::boxing
