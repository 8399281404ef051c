// The functions of core/device/cuda.h and device memory in builds without CUDA.
#include <cstring>

#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/device_graph.h"
#include "core/device/device_memory.h"
#include "core/device/device_time.h"
#include "core/device/joined_launch.h"
#include "core/error.h"

namespace flow {

namespace {
[[noreturn]] void fail(const char* what) {
  throw Unsupported(
      str("[cuda] ", what, ": this build has no CUDA; configure with -DFLOW_CUDA=ON"));
}
}  // namespace

Ref<Storage> allocate_storage(RankContext& rank, DeviceType device, size_t bytes) {
  if (device != DeviceType::kCpu) fail("device memory was asked for");
  return Storage::allocate(rank.allocator(), bytes);
}

Ref<Storage> allocate_staging(RankContext& rank, size_t bytes) {
  return Storage::allocate(rank.allocator(), bytes);
}

void copy_bytes(RankContext& /*rank*/, void* target, DeviceType /*target_device*/,
                const void* source, DeviceType /*source_device*/, size_t bytes) {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

bool is_elsewhere(RankContext& /*rank*/, const TensorImpl& /*tensor*/) {
  return false;
}

bool is_of_other_rank(RankContext& /*rank*/, const TensorImpl& /*tensor*/) {
  return false;
}

Ref<Storage> taken_over(RankContext& /*rank*/, Ref<Storage> memory) {
  return memory;
}

void OthersMemory::order(const TensorImpl& /*tensor*/, const char* /*op*/, Site /*site*/,
                         Where /*where*/) {
  static_cast<void>(rank_);  // clang warns of members that nothing uses
  static_cast<void>(own_);
}

void OthersMemory::release() noexcept {}

void synchronize_device(RankContext& /*rank*/, DeviceType /*device*/) {}

DeviceMark DeviceMark::now(RankContext& /*rank*/) {
  fail("a device's time was asked for");
}

Ref<Storage> CaptureMemory::take(RankContext& /*rank*/, size_t /*bytes*/) {
  fail("device memory was asked for");
}

int64_t CaptureMemory::bytes() const {
  return 0;
}

DeviceGraph DeviceGraph::capture(RankContext& /*rank*/,
                                 const std::shared_ptr<CaptureMemory>& /*memory*/,
                                 const std::function<void()>& /*queue*/) {
  fail("a capture was asked for");
}

void DeviceGraph::launch(RankContext& /*rank*/) const {}

CapturedDraw::CapturedDraw(const RandomStream* /*there*/) {}

CapturedDraw::~CapturedDraw() = default;

bool CapturedDraw::was_used() const {
  return false;
}

double DeviceMark::us_since(const DeviceMark& /*earlier*/) const {
  return 0;
}

namespace cuda {

JoinLaunches::JoinLaunches() = default;

JoinLaunches::~JoinLaunches() = default;

void queue_joined() {}

bool is_built() {
  return false;
}

bool is_available() {
  return false;
}

int device_count() {
  return 0;
}

int current_device() {
  fail("the current device was asked for");
}

void set_device(int /*index*/) {
  fail("a device was selected");
}

std::string device_name(int /*index*/) {
  fail("a device was named");
}

void synchronize() {
  fail("a device was waited for");
}

AllocatorStats memory_stats() {
  fail("device memory was asked for");
}

void reset_peak_memory_stats() {
  fail("device memory was asked for");
}

void empty_cache() {
  fail("device memory was asked for");
}

}  // namespace cuda

}  // namespace flow
