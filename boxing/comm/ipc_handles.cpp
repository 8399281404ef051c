#include "boxing/comm/ipc_handles.h"

#include <cstring>

#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace flow::boxing {

IpcEvent::~IpcEvent() {
  if (raw_ != nullptr) cuda::warn_if_failed(cudaEventDestroy(raw_), "cudaEventDestroy");
}

bool ipc_succeeds(cudaError_t result) {
  if (result == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

IpcMemory::~IpcMemory() {
  device_.make_current();
  cuda::warn_if_failed(cudaStreamSynchronize(device_.compute_stream()), "cudaStreamSynchronize");
  cuda::warn_if_failed(cudaStreamSynchronize(device_.communication_stream()),
                       "cudaStreamSynchronize");
  cuda::warn_if_failed(cudaStreamSynchronize(device_.copy_stream()), "cudaStreamSynchronize");
  for (const auto& [handle, begin] : opened_)
    cuda::warn_if_failed(cudaIpcCloseMemHandle(begin), "cudaIpcCloseMemHandle");
}

bool IpcMemory::find_place(const std::byte* memory, IpcPlace& place) {
  if (memory == nullptr) return true;
  std::byte* const begin = device_.share_allocation(memory);
  if (begin == nullptr) return false;
  auto& known = own_handles_[begin];
  if (!known) {
    cudaIpcMemHandle_t handle;
    if (!ipc_succeeds(cudaIpcGetMemHandle(&handle, begin))) return false;
    known.emplace();
    std::memcpy(known->data(), &handle, known->size());
  }
  place = {*known, memory - begin};
  return true;
}

std::byte* IpcMemory::open(const MemoryHandle& handle) {
  const auto known = opened_.find(handle);
  if (known != opened_.end()) return known->second;
  cudaIpcMemHandle_t raw;
  std::memcpy(&raw, handle.data(), handle.size());
  void* begin = nullptr;
  if (!ipc_succeeds(cudaIpcOpenMemHandle(&begin, raw, cudaIpcMemLazyEnablePeerAccess)))
    return nullptr;
  return opened_[handle] = static_cast<std::byte*>(begin);
}

}  // namespace flow::boxing
