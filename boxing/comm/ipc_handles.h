// Memory and events of processes that share a CUDA device, by CUDA's handles; only for files that
// see CUDA's headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/device/cuda_error.h"

namespace flow::cuda {
class RankDevice;
}

namespace flow::boxing {

using MemoryHandle = std::array<char, sizeof(cudaIpcMemHandle_t)>;

// A place in the memory of a process: its allocation and the distance from its beginning.
struct IpcPlace {
  MemoryHandle handle{};
  int64_t offset = -1;  // -1: null
};

class IpcEvent {
 public:
  IpcEvent() = default;
  ~IpcEvent();

  IpcEvent(IpcEvent&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}

  IpcEvent& operator=(IpcEvent&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }

  cudaEvent_t get() const { return raw_; }

  cudaEvent_t* out() { return &raw_; }

 private:
  cudaEvent_t raw_ = nullptr;
};

// Whether a call succeeded. If not, its error is forgotten: the caller uses another way.
bool ipc_succeeds(cudaError_t result);

// The memory that a rank shares with other processes, and theirs that it has opened. Used by one
// thread at a time.
class IpcMemory {
 public:
  explicit IpcMemory(cuda::RankDevice& device) : device_(device) {}

  // Handles are closed before their owner may free the memory: it frees nothing that it shares.
  ~IpcMemory();
  IpcMemory(const IpcMemory&) = delete;
  IpcMemory& operator=(const IpcMemory&) = delete;

  // False: the memory cannot be shared.
  bool find_place(const std::byte* memory, IpcPlace& place);
  // The beginning of an allocation of another process. Null: CUDA refuses.
  std::byte* open(const MemoryHandle& handle);

 private:
  cuda::RankDevice& device_;
  std::map<std::byte*, std::optional<MemoryHandle>> own_handles_;  // by the allocation
  std::map<MemoryHandle, std::byte*> opened_;
};

}  // namespace flow::boxing
