#include "boxing/comm/ipc_communicator.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "boxing/comm/gathered.h"
#include "boxing/comm/ipc_handles.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_memory.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

constexpr size_t kEvents = 4;

using EventHandles = std::array<cudaIpcEventHandle_t, kEvents>;

class IpcCommunicator final : public DeviceCommunicator {
 public:
  IpcCommunicator(RankContext& rank, Communicator& group)
      : device_(cuda::rank_device(rank)),
        group_(group),
        memory_(device_),
        published_(static_cast<size_t>(group.size())),
        counts_(published_.size()) {}

  // Collective. Shares `sample` for a trial. False: a member cannot open what another one shares.
  bool connect(const std::byte* sample, const Fingerprint& what) {
    device_.make_current();
    EventHandles handles{};
    bool can = true;
    for (size_t i = 0; i < kEvents; ++i) {
      can = can && ipc_succeeds(cudaEventCreateWithFlags(
                       own_events_[i].out(), cudaEventDisableTiming | cudaEventInterprocess));
      can = can && ipc_succeeds(cudaIpcGetEventHandle(&handles[i], own_events_[i].get()));
    }
    IpcPlace place;
    can = can && memory_.find_place(sample, place);
    if (!can_all(group_, can, what)) return false;
    const auto all_handles = gathered(group_, handles, what);
    const auto all_places = gathered(group_, place, what);
    events_.resize(all_handles.size());
    for (size_t i = 0; i < all_handles.size() && can; ++i) {
      if (is_own(i)) continue;
      for (size_t k = 0; k < kEvents && can; ++k)
        can = ipc_succeeds(cudaIpcOpenEventHandle(events_[i][k].out(), all_handles[i][k]));
      can = can && memory_.open(all_places[i].handle) != nullptr;
    }
    return can_all(group_, can, what);
  }

  std::span<const Part> open(const Part& own, const Fingerprint& what) override {
    meet(own, what);
    return published_;
  }

  void close(const Fingerprint& what) override {
    const size_t slot = record();
    agree(what);
    wait_for(slot);
  }

 private:
  struct Note {
    IpcPlace source;
    IpcPlace target;
    std::array<int64_t, kMostDeviceMembers> counts{};
    bool has_counts = false;
  };

  bool is_own(size_t member) const { return static_cast<int64_t>(member) == group_.position(); }

  std::byte* found(const IpcPlace& place, const Fingerprint& what) {
    if (place.offset < 0) return nullptr;
    std::byte* const begin = memory_.open(place.handle);
    if (begin != nullptr) return begin + place.offset;
    throw DistributedError(str("[", what.op, "] CUDA cannot open memory of another process"),
                           what.site);
  }

  // An event is recorded again after four meetings. By then every member has passed it to its
  // stream, because it comes to a meeting only after it has done so for the one before.
  size_t record() {
    device_.make_current();
    const size_t slot = std::exchange(next_, (next_ + 1) % kEvents);
    FLOW_CUDA_CALL(cudaEventRecord(own_events_[slot].get(), device_.stream()));
    return slot;
  }

  // The members meet and compare their calls.
  void agree(Fingerprint call) {
    call.known_hash = call.hash();
    group_.barrier(call);
  }

  void wait_for(size_t slot) {
    for (size_t i = 0; i < events_.size(); ++i) {
      if (!is_own(i))
        FLOW_CUDA_CALL(cudaStreamWaitEvent(device_.stream(), events_[i][slot].get(), 0));
    }
  }

  // Members that call different collectives get an error before they show their memory.
  void meet(const Part& part, const Fingerprint& what) {
    const size_t slot = record();
    Note own;
    if (!memory_.find_place(part.source, own.source) ||
        !memory_.find_place(part.target, own.target))
      throw InternalError("[communicator] memory of a device that cannot be shared");
    if (part.counts != nullptr) {
      std::copy_n(part.counts, published_.size(), own.counts.begin());
      own.has_counts = true;
    }
    agree(what);
    const std::vector<Note> notes = gathered(group_, own, what);
    for (size_t i = 0; i < notes.size(); ++i) {
      counts_[i] = notes[i].counts;
      published_[i] = is_own(i) ? part
                                : Part{.source = found(notes[i].source, what),
                                       .target = found(notes[i].target, what)};
      published_[i].counts = notes[i].has_counts ? counts_[i].data() : nullptr;
    }
    wait_for(slot);
  }

  cuda::RankDevice& device_;
  Communicator& group_;
  std::array<IpcEvent, kEvents> own_events_;
  std::vector<std::array<IpcEvent, kEvents>> events_;  // of the members
  size_t next_ = 0;
  IpcMemory memory_;
  std::vector<Part> published_;
  std::vector<std::array<int64_t, kMostDeviceMembers>> counts_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> make_ipc_communicator(RankContext& rank, Communicator& group,
                                                          const Fingerprint& what) {
  if (group.shares_memory() || group.size() < 2 || group.size() > kMostDeviceMembers)
    return nullptr;
  const auto& uuid = cuda::device_uuid(rank);
  const auto all = gathered(group, uuid, what);
  if (std::any_of(all.begin(), all.end(), [&](const auto& other) { return other != uuid; }))
    return nullptr;
  const Ref<Storage> sample = allocate_storage(rank, DeviceType::kCuda, 1);
  auto made = std::make_unique<IpcCommunicator>(rank, group);
  if (!made->connect(sample->data(), what)) return nullptr;
  return made;
}

}  // namespace flow::boxing
