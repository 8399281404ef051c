#include "boxing/comm/device_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "boxing/comm/ipc_communicator.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace flow::boxing {

namespace {

// Events for reuse. They are never destroyed, because a member may pass an event of another rank to
// its stream after that rank has ended.
class EventPool {
 public:
  static EventPool& instance() {
    static EventPool& pool = *new EventPool;
    return pool;
  }

  // Requires: `device` is the calling thread's current device.
  cudaEvent_t take(int device) {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[device];
      if (!idle.empty()) {
        cudaEvent_t event = idle.back();
        idle.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }

  void give_back(int device, cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(event);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<cudaEvent_t>> idle_;  // by device; guarded by mutex_
};

class PointersAndEvents final : public DeviceCommunicator {
 public:
  PointersAndEvents(RankContext& rank, Communicator& group)
      : device_(cuda::rank_device(rank)), group_(group) {
    for (cudaEvent_t& event : events_)
      event = EventPool::instance().take(device_.index());
    const auto size = static_cast<size_t>(group.size());
    published_.resize(size);
    notes_.resize(size);
  }

  ~PointersAndEvents() override {
    for (cudaEvent_t event : events_)
      EventPool::instance().give_back(device_.index(), event);
  }

  std::span<const Part> open(const Part& own, const Fingerprint& what) override {
    meet(own, what);
    for (size_t i = 0; i < notes_.size(); ++i)
      published_[i] = notes_[i].part;
    return published_;
  }

  void close(const Fingerprint& what) override { meet({}, what); }

 private:
  struct Note {
    Part part;
    cudaEvent_t queued;  // follows the member's work
  };

  // An event is recorded again after four meetings. By then every member has passed it to its
  // stream, because it comes to a meeting only after it has done so for the one before.
  void meet(const Part& part, const Fingerprint& what) {
    device_.make_current();
    const cudaEvent_t event = events_[next_];
    next_ = (next_ + 1) % events_.size();
    FLOW_CUDA_CALL(cudaEventRecord(event, device_.stream()));
    const Note own{part, event};
    const auto shown =
        group_.open(&own, static_cast<int64_t>(sizeof(own)), what);  // in host memory
    for (size_t i = 0; i < notes_.size(); ++i)
      std::memcpy(&notes_[i], shown[i], sizeof(Note));
    group_.close();
    for (size_t i = 0; i < notes_.size(); ++i) {
      if (static_cast<int64_t>(i) == group_.position()) continue;
      FLOW_CUDA_CALL(cudaStreamWaitEvent(device_.stream(), notes_[i].queued, 0));
    }
  }

  cuda::RankDevice& device_;
  Communicator& group_;
  std::array<cudaEvent_t, 4> events_{};
  size_t next_ = 0;
  std::vector<Note> notes_;
  std::vector<Part> published_;
};

// The rank's device communicators; null where the members cannot have one.
struct DeviceCommunicators {
  std::mutex mutex;
  std::map<const Communicator*, std::unique_ptr<DeviceCommunicator>> by_group;  // guarded by mutex
};

bool use_one_device(RankContext& rank, Communicator& group, const Fingerprint& what) {
  if (!group.shares_memory() || group.size() > kMostDeviceMembers) return false;
  const int own = cuda::rank_device(rank).index();
  const auto shown = group.open(&own, static_cast<int64_t>(sizeof(own)), what);
  const bool are_equal = std::all_of(shown.begin(), shown.end(), [&](const std::byte* member) {
    int device = 0;
    std::memcpy(&device, member, sizeof(device));
    return device == own;
  });
  group.close();
  return are_equal;
}

}  // namespace

DeviceCommunicator* device_communicator_for(RankContext& rank, Communicator& group,
                                            const Fingerprint& what) {
  auto& all = rank.slot<DeviceCommunicators>();
  {
    const std::lock_guard lock(all.mutex);
    const auto known = all.by_group.find(&group);
    if (known != all.by_group.end()) return known->second.get();
  }
  std::unique_ptr<DeviceCommunicator> made;
  if (use_one_device(rank, group, what)) {
    made = std::make_unique<PointersAndEvents>(rank, group);
  } else {
    made = make_ipc_communicator(rank, group, what);
  }
  const std::lock_guard lock(all.mutex);
  return all.by_group.emplace(&group, std::move(made)).first->second.get();
}

}  // namespace flow::boxing
