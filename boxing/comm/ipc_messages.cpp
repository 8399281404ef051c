#include "boxing/comm/ipc_messages.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "boxing/comm/device_point.h"
#include "boxing/comm/ipc_handles.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/env.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

static_assert(sizeof(IpcHandle) == sizeof(MemoryHandle));
static_assert(sizeof(IpcHandle) == sizeof(cudaIpcEventHandle_t));

// All work is queued on the copy stream, which thus waits for work of other processes, too. A
// handle is passed on only after its event was recorded, so every wait is for work that was queued
// before it, and streams cannot wait for each other in a circle.
class OnCopyStream final : public IpcMessages {
 public:
  explicit OnCopyStream(cuda::RankDevice& device) : device_(device), memory_(device) {}

  std::optional<IpcTarget> show(const CopyEnd& target) override {
    device_.make_current();
    IpcPlace place;
    if (!memory_.find_place(target.data, place)) return {};
    FLOW_CUDA_CALL(cudaStreamWaitEvent(device_.copy_stream(), target.ready->event, 0));
    return IpcTarget{place.handle, place.offset, record()};
  }

  std::optional<IpcCopy> copy(const CopyEnd& source, int64_t bytes,
                              const IpcTarget& target) override {
    device_.make_current();
    const cudaStream_t stream = device_.copy_stream();
    std::byte* const begin = memory_.open(target.memory);
    const cudaEvent_t ready = begin == nullptr ? nullptr : open(target.ready);
    if (ready == nullptr) return {};
    FLOW_CUDA_CALL(cudaStreamWaitEvent(stream, source.ready->event, 0));
    FLOW_CUDA_CALL(cudaStreamWaitEvent(stream, ready, 0));
    FLOW_CUDA_CALL(cudaMemcpyAsync(begin + target.offset, source.data, static_cast<size_t>(bytes),
                                   cudaMemcpyDeviceToDevice, stream));
    return IpcCopy{std::make_shared<const DevicePoint>(stream, device_.index()), record()};
  }

  DevicePointPtr end_of(const IpcHandle& done) override {
    device_.make_current();
    const cudaEvent_t event = open(done);
    if (event == nullptr) throw DistributedError("CUDA cannot open an event of another process");
    FLOW_CUDA_CALL(cudaStreamWaitEvent(device_.copy_stream(), event, 0));
    return std::make_shared<const DevicePoint>(device_.copy_stream(), device_.index());
  }

  void reuse(const IpcHandle& event) override { idle_.push_back(event); }

 private:
  // Records an event that other processes can open.
  IpcHandle record() {
    if (idle_.empty()) {
      IpcEvent made;
      cudaIpcEventHandle_t raw;
      FLOW_CUDA_CALL(
          cudaEventCreateWithFlags(made.out(), cudaEventDisableTiming | cudaEventInterprocess));
      FLOW_CUDA_CALL(cudaIpcGetEventHandle(&raw, made.get()));
      IpcHandle& handle = idle_.emplace_back();
      std::memcpy(handle.data(), &raw, handle.size());
      own_events_[handle] = std::move(made);
    }
    const IpcHandle handle = idle_.back();
    FLOW_CUDA_CALL(cudaEventRecord(own_events_.at(handle).get(), device_.copy_stream()));
    idle_.pop_back();
    return handle;
  }

  // Null: CUDA refuses.
  cudaEvent_t open(const IpcHandle& handle) {
    const auto known = opened_events_.find(handle);
    if (known != opened_events_.end()) return known->second.get();
    cudaIpcEventHandle_t raw;
    std::memcpy(&raw, handle.data(), handle.size());
    IpcEvent opened;
    if (!ipc_succeeds(cudaIpcOpenEventHandle(opened.out(), raw))) return nullptr;
    return (opened_events_[handle] = std::move(opened)).get();
  }

  cuda::RankDevice& device_;
  std::map<IpcHandle, IpcEvent> own_events_;
  std::vector<IpcHandle> idle_;  // those that nobody waits for
  std::map<IpcHandle, IpcEvent> opened_events_;
  IpcMemory memory_;  // ends first, after the work on the copy stream
};

}  // namespace

IpcOffer ipc_offer(RankContext& rank) {
  return {.shares = true, .device = cuda::device_uuid(rank)};
}

bool may_share(const IpcOffer& a, const IpcOffer& b) {
  return a.shares && b.shares && a.device == b.device;
}

std::unique_ptr<IpcMessages> make_ipc_messages(RankContext& rank) {
  return std::make_unique<OnCopyStream>(cuda::rank_device(rank));
}

}  // namespace flow::boxing
