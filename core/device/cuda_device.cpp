#include "core/device/cuda_device.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/cuda.h"
#include "core/device/cuda_error.h"
#include "core/device/cuda_launch.h"
#include "core/error.h"

namespace flow::cuda {

namespace {

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  FLOW_CUDA_CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

Fault* make_fault() {
  void* memory = nullptr;
  FLOW_CUDA_CALL(cudaMallocHost(&memory, sizeof(Fault)));
  return new (memory) Fault;
}

// The calling thread's device; -1: not set yet.
thread_local int current_index = -1;

constinit thread_local bool queues_communication = false;

int made_current(int index) {
  check(set_current(index), "cudaSetDevice");
  return index;
}

// The devices of all ranks of this process, so far.
struct Devices {
  std::mutex mutex;
  // Guarded by mutex.
  std::vector<RankDevice*> all;
  std::vector<RankDevice*> idle;  // of ended ranks, for reuse by new ranks
};

Devices& devices() {
  static Devices& instance = *new Devices;  // never destroyed, as the devices in it
  return instance;
}

RankDevice* acquire(int index) {
  Devices& known = devices();
  {
    const std::lock_guard lock(known.mutex);
    for (auto it = known.idle.begin(); it != known.idle.end(); ++it) {
      if ((*it)->index() != index) continue;
      RankDevice* device = *it;
      known.idle.erase(it);
      return device;
    }
  }
  auto* device = new RankDevice(index);
  const std::lock_guard lock(known.mutex);
  known.all.push_back(device);
  known.idle.reserve(known.all.size());  // so that a rank's end takes no memory
  return device;
}

// Empties the caches of all ranks of this process that use the device.
void release_caches_of(int device) {
  std::vector<RankDevice*> ranks;
  {
    const std::lock_guard lock(devices().mutex);
    ranks = devices().all;
  }
  for (RankDevice* rank : ranks) {
    if (rank->index() == device) rank->release_cached_memory();
  }
}

// A rank's device, selected or in use; stored in the rank's context.
class DeviceSlot {
 public:
  DeviceSlot() = default;
  DeviceSlot(const DeviceSlot&) = delete;
  DeviceSlot& operator=(const DeviceSlot&) = delete;

  // Waits for the work that the rank has queued, so that it ends before others see its results.
  ~DeviceSlot() {
    if (device_ == nullptr) return;
    device_->end_rank();
    const std::lock_guard lock(devices().mutex);
    devices().idle.push_back(device_);
  }

  RankDevice& device(const RankIdentity& rank) {
    const std::lock_guard lock(mutex_);
    if (device_ == nullptr) device_ = acquire(index(rank));
    return *device_;
  }

  const std::array<char, 16>& uuid(const RankIdentity& rank) {
    const int of = device(rank).index();
    const std::lock_guard lock(mutex_);
    if (!uuid_) {
      cudaDeviceProp properties = {};
      FLOW_CUDA_CALL(cudaGetDeviceProperties(&properties, of));
      static_assert(sizeof(*uuid_) == sizeof(properties.uuid.bytes));
      std::memcpy(uuid_.emplace().data(), properties.uuid.bytes, sizeof(properties.uuid.bytes));
    }
    return *uuid_;
  }

  int index(const RankIdentity& rank) const {
    if (device_ != nullptr) return device_->index();
    if (selected_ >= 0) return selected_;
    const int count = device_count();
    if (count == 0) {
      throw Unsupported(
          "[cuda] no CUDA device can be used on this machine; use device cpu, or check the driver "
          "and CUDA_VISIBLE_DEVICES");
    }
    return static_cast<int>(rank.local_rank % count);
  }

  void select(int index) {
    const std::lock_guard lock(mutex_);
    const int count = device_count();
    if (index < 0 || index >= count) {
      throw InvalidArgument(
          str("[cuda] device ", index, " does not exist; this machine has ", count,
              count == 0 ? " devices; use device cpu" : " devices; use a smaller index"));
    }
    if (device_ != nullptr && device_->index() != index) {
      throw InvalidArgument(str("[cuda] this rank already computes on device ", device_->index(),
                                "; received device ", index,
                                "; a rank has one device: select it before the first use, or start "
                                "a rank per device"));
    }
    selected_ = index;
  }

 private:
  std::mutex mutex_;
  RankDevice* device_ = nullptr;
  int selected_ = -1;
  std::optional<std::array<char, 16>> uuid_;  // of device_, once somebody asked for it
};

DeviceSlot& slot_of(RankContext& rank) {
  return rank.slot<DeviceSlot>();
}

RankContext& this_rank() {
  return *thread_state().context;
}

}  // namespace

cudaError_t set_current(int device) noexcept {
  if (current_index == device) return cudaSuccess;
  const cudaError_t result = cudaSetDevice(device);
  if (result == cudaSuccess) current_index = device;
  return result;
}

OnDevice::OnDevice(int device) noexcept : outer_(current_index) {
  warn_if_failed(set_current(device), "cudaSetDevice");
}

OnDevice::~OnDevice() {
  if (outer_ >= 0) warn_if_failed(set_current(outer_), "cudaSetDevice");
}

OnCommunicationStream::OnCommunicationStream() {
  queue_joined();
  outer_ = std::exchange(queues_communication, true);
}

OnCommunicationStream::~OnCommunicationStream() {
  queue_joined_or_warn();
  queues_communication = outer_;
}

RankDevice::Queue::Queue(RankDevice& device, cudaStream_t of)
    : stream(of),
      allocator(device.index(), of, [index = device.index()] { release_caches_of(index); }),
      ring(of) {}

RankDevice::RankDevice(int index)
    : index_(made_current(index)),
      copy_(make_stream()),
      fault_(make_fault()),
      compute_(*this, make_stream()),
      communication_(*this, make_stream()) {}

bool RankDevice::is_on_communication_stream() {
  return queues_communication;
}

std::byte* RankDevice::share_allocation(const void* memory) {
  const auto* const byte = static_cast<const std::byte*>(memory);
  // An empty part may begin where its allocation ends, and there another one may begin.
  for (const std::byte* inside : {byte, byte - 1}) {
    for (Queue* queue : {&compute_, &communication_}) {
      if (std::byte* const begin = queue->allocator.share_segment(inside)) return begin;
    }
  }
  return nullptr;
}

AllocatorStats RankDevice::memory_stats() const {
  AllocatorStats sum = compute_.allocator.stats();
  const AllocatorStats other = communication_.allocator.stats();
  sum.bytes_in_use += other.bytes_in_use;
  sum.peak_bytes_in_use += other.peak_bytes_in_use;
  sum.bytes_cached += other.bytes_cached;
  sum.num_allocations += other.num_allocations;
  sum.num_cache_hits += other.num_cache_hits;
  return sum;
}

void RankDevice::reset_peak_memory() {
  compute_.allocator.reset_peak();
  communication_.allocator.reset_peak();
}

void RankDevice::release_cached_memory() {
  compute_.allocator.release_cached();
  communication_.allocator.release_cached();
}

void RankDevice::end_rank() noexcept {
  queue_joined_or_warn();
  warn_if_failed(set_current(index_), "cudaSetDevice");
  for (const cudaStream_t stream : {compute_.stream, copy_, communication_.stream})
    warn_if_failed(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  *fault_ = Fault();
  {
    const std::lock_guard lock(loss_mutex_);
    has_lost_results_ = false;
    explain_loss_ = {};
  }
  for (Queue* queue : {&compute_, &communication_}) {
    queue->ring.release();
    queue->allocator.set_limit(INT64_MAX);
    queue->allocator.reset_peak();
  }
}

void RankDevice::make_current() const {
  made_current(index_);
}

void RankDevice::synchronize() const {
  refuse_in_capture("the host waits for the device");
  FLOW_CUDA_CALL(cudaStreamSynchronize(compute_stream()));
  FLOW_CUDA_CALL(cudaStreamSynchronize(copy_));
  FLOW_CUDA_CALL(cudaStreamSynchronize(communication_.stream));
  throw_fault();
}

void RankDevice::lose_results(std::function<void()> explain) {
  const std::lock_guard lock(loss_mutex_);
  explain_loss_ = std::move(explain);
  has_lost_results_ = true;
}

void RankDevice::throw_loss() const {
  std::function<void()> explain;
  {
    const std::lock_guard lock(loss_mutex_);
    if (has_lost_results_.exchange(false)) explain = std::exchange(explain_loss_, {});
  }
  if (explain) explain();
}

void RankDevice::throw_fault() const {
  // The errors are the compute stream's, and the thread of the program throws them. A kernel may be
  // writing the fault while the communication thread reads.
  if (queues_communication) return;
  if (has_lost_results_) [[unlikely]]
    throw_loss();
  if (std::atomic_ref(fault_->state).load() != Fault::kWhole) [[likely]]
    return;
  const Fault found = *fault_;
  *fault_ = Fault();
  throw InvalidArgument(str("[", found.op, "] index ", found.value,
                            " is out of range; give positions from ", found.lowest, " to ",
                            found.highest,
                            " (an earlier call found this on the device and skipped the value)"));
}

RankDevice& rank_device(RankContext& rank) {
  RankDevice& device = slot_of(rank).device(rank.identity());
  device.make_current();
  return device;
}

const std::array<char, 16>& device_uuid(RankContext& rank) {
  return slot_of(rank).uuid(rank.identity());
}

cudaError_t order_work(const DeviceAllocator& first, const DeviceAllocator& second) noexcept {
  queue_joined_or_warn();
  const int outer = current_index;
  cudaEvent_t reached = nullptr;
  // An event is recorded on streams of its own device only.
  cudaError_t result = set_current(first.device());
  if (result == cudaSuccess) result = cudaEventCreateWithFlags(&reached, cudaEventDisableTiming);
  if (result == cudaSuccess) result = cudaEventRecord(reached, first.stream());
  if (result == cudaSuccess) result = cudaStreamWaitEvent(second.stream(), reached, 0);
  // CUDA frees the event after it is reached.
  if (reached != nullptr) warn_if_failed(cudaEventDestroy(reached), "cudaEventDestroy");
  if (outer >= 0) {
    const cudaError_t restored = set_current(outer);
    if (result == cudaSuccess) result = restored;
  }
  return result;
}

cudaStream_t stream_of(const KernelContext& ctx) {
  return rank_device(ctx.rank).stream();
}

bool is_built() {
  return true;
}

bool is_available() {
  return device_count() > 0;
}

int device_count() {
  static const int count = [] {
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // no driver: no devices
      found = 0;
    }
    return found;
  }();
  return count;
}

int current_device() {
  RankContext& rank = this_rank();
  return slot_of(rank).index(rank.identity());
}

void set_device(int index) {
  slot_of(this_rank()).select(index);
}

std::string device_name(int index) {
  cudaDeviceProp properties = {};
  FLOW_CUDA_CALL(cudaGetDeviceProperties(&properties, index));
  return properties.name;
}

void synchronize() {
  rank_device(this_rank()).synchronize();
}

AllocatorStats memory_stats() {
  return rank_device(this_rank()).memory_stats();
}

void reset_peak_memory_stats() {
  rank_device(this_rank()).reset_peak_memory();
}

void empty_cache() {
  rank_device(this_rank()).release_cached_memory();
}

}  // namespace flow::cuda
