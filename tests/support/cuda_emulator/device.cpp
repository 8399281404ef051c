// Devices and their memory: one range of addresses that may be used only in an AccessWindow.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include <sys/mman.h>

#include "emulated_device.h"

namespace cuda_emulator {

namespace {

constexpr size_t kReserved = size_t{64} << 30;  // addresses only, not memory
constexpr size_t kAlignment = 512;
constexpr size_t kPage = 4096;
constexpr int kDevices = 2;
// What is behind each block, and found changed when it is freed: 64 bytes at least.
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};
constexpr size_t kMostPoisoned = size_t{64} << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

struct Memory {
  std::byte* base = nullptr;
  size_t high = 0;  // end of the highest block allocated so far
  size_t in_use = 0;
  size_t limit = size_t{4} << 30;

  struct Block {
    size_t size;
    size_t bytes;  // that were asked for
  };

  std::map<size_t, Block> blocks;  // by offset
  std::map<const void*, size_t> pinned;
  int windows = 0;
  cudaError_t failure = cudaSuccess;
  std::recursive_mutex mutex;

  Memory() {
    void* range =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range != MAP_FAILED) base = static_cast<std::byte*>(range);
  }

  // New memory holds ones, which are NaN as floats, so that a kernel which reads it before it is
  // written gives a wrong result.
  void poison(size_t offset, const Block& block) {
    AccessWindow window;
    std::memset(base + offset, 0xff, std::min(block.bytes, kMostPoisoned));
    std::memset(base + offset + block.bytes, std::to_integer<int>(kGuard),
                block.size - block.bytes);
  }

  bool has_guards(size_t offset, const Block& block) {
    AccessWindow window;
    return std::all_of(base + offset + block.bytes, base + offset + block.size,
                       [](std::byte value) { return value == kGuard; });
  }

  void protect(int access) const {
    if (high > 0) mprotect(base, round_up(high, kPage), access);
  }
};

Memory& memory() {
  static Memory& instance = *new Memory;  // never destroyed: static tensors may use it
  return instance;
}

thread_local int current_device = 0;

}  // namespace

std::recursive_mutex& device_mutex() {
  return memory().mutex;
}

AccessWindow::AccessWindow() {
  if (memory().windows++ == 0) memory().protect(PROT_READ | PROT_WRITE);
}

AccessWindow::~AccessWindow() {
  if (--memory().windows == 0) memory().protect(PROT_NONE);
}

bool is_device_memory(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= memory().base && byte < memory().base + kReserved;
}

bool is_pinned_memory(const void* address) {
  const auto next = memory().pinned.upper_bound(address);
  if (next == memory().pinned.begin()) return false;
  const auto& [block, size] = *std::prev(next);
  return static_cast<const std::byte*>(address) < static_cast<const std::byte*>(block) + size;
}

namespace {
std::atomic<bool> has_no_products = false;
}  // namespace

void refuse_products(bool refuses) {
  has_no_products = refuses;
}

bool refuses_products() {
  return has_no_products;
}

void set_device_memory(size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().limit = bytes;
}

size_t pinned_bytes() {
  const std::lock_guard lock(memory().mutex);
  size_t sum = 0;
  for (const auto& [block, size] : memory().pinned)
    sum += size;
  return sum;
}

void report_failure(cudaError_t error) {
  if (error != cudaSuccess) memory().failure = error;
}

cudaError_t take_failure() {
  return std::exchange(memory().failure, cudaSuccess);
}

}  // namespace cuda_emulator

using cuda_emulator::memory;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorAssert:
      return "cudaErrorAssert";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  return "unknown";
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "threads of a block wait at different barriers"
                                         : "emulated";
}

cudaError_t cudaGetLastError() {
  const std::lock_guard lock(memory().mutex);
  return cuda_emulator::take_failure();
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = cuda_emulator::kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = cuda_emulator::current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= cuda_emulator::kDevices) return cudaErrorInvalidDevice;
  cuda_emulator::current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= cuda_emulator::kDevices) return cudaErrorInvalidDevice;
  *properties = {};
  std::strcpy(properties->name, "emulated device");
  properties->totalGlobalMem = memory().limit;
  properties->multiProcessorCount = 1;
  properties->major = 9;
  return cudaSuccess;
}

// First fit between the allocated blocks.
cudaError_t cudaMalloc(void** block, size_t bytes) {
  using cuda_emulator::kAlignment;
  const std::lock_guard lock(memory().mutex);
  const size_t size = cuda_emulator::round_up(bytes + cuda_emulator::kGuardBytes, kAlignment);
  if (memory().base == nullptr || size > memory().limit ||
      memory().in_use > memory().limit - size) {
    return cudaErrorMemoryAllocation;
  }
  size_t offset = 0;
  for (const auto& [begin, used] : memory().blocks) {
    if (begin - offset >= size) break;
    offset = begin + used.size;
  }
  if (offset + size > cuda_emulator::kReserved) return cudaErrorMemoryAllocation;
  memory().blocks[offset] = {size, bytes};
  memory().in_use += size;
  memory().high = std::max(memory().high, offset + size);
  if (memory().windows > 0) memory().protect(PROT_READ | PROT_WRITE);
  memory().poison(offset, {size, bytes});
  *block = memory().base + offset;
  return cudaSuccess;
}

cudaError_t cudaFree(void* block) {
  if (block == nullptr) return cudaSuccess;
  const cudaError_t earlier = cudaDeviceSynchronize();
  const std::lock_guard lock(memory().mutex);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(block) - memory().base);
  const auto found = memory().blocks.find(offset);
  if (found == memory().blocks.end()) return cudaErrorInvalidValue;
  const bool is_intact = memory().has_guards(offset, found->second);
  memory().in_use -= found->second.size;
  memory().blocks.erase(found);
  return earlier == cudaSuccess && !is_intact ? cudaErrorIllegalAddress : earlier;
}

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  const size_t size = cuda_emulator::round_up(std::max<size_t>(bytes, 1), cuda_emulator::kPage);
  *block = std::aligned_alloc(cuda_emulator::kPage, size);
  if (*block == nullptr) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(memory().mutex);
  memory().pinned[*block] = size;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* block) {
  const std::lock_guard lock(memory().mutex);
  if (memory().pinned.erase(block) == 0) return cudaErrorInvalidValue;
  std::free(block);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const std::lock_guard lock(memory().mutex);
  *total_bytes = memory().limit;
  *free_bytes = memory().limit - std::min(memory().limit, memory().in_use);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* /*function*/, cudaFuncAttribute /*attribute*/,
                                 int value) {
  return value <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}
