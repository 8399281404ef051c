// Devices and their memory: a range of addresses for each, that may be used only in an AccessWindow
// of that device.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "emulated_device.h"
#include "emulated_library.h"
#include "emulated_stream.h"
#include "library_hooks.h"
#include "shared_pages.h"

namespace cuda_emulator {

namespace {

constexpr size_t kReserved = size_t{32} << 30;  // addresses of each device, not memory
constexpr size_t kAlignment = 4096;             // so that processes can share single blocks
constexpr size_t kPage = 4096;
// Protecting and opening memory takes a time for each page, so the pages are huge if possible.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kDevices = 2;
// What is behind each block, and found changed when it is freed: 64 bytes at least.
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};
constexpr size_t kMostPoisoned = size_t{64} << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The memory of one device. Requires device_mutex().
struct DeviceMemory {
  std::byte* base = nullptr;
  size_t high = 0;  // end of the highest block allocated so far
  size_t in_use = 0;

  struct Block {
    size_t size;
    size_t bytes;  // that were asked for
    // Of a block that processes share: its pages, behind which is how many others have it open.
    PagesName pages = {};
    int times_opened = 0;  // of a block of another process
  };

  std::map<size_t, Block> blocks;                // by offset
  std::map<const void*, size_t> dynamic_shared;  // that kernels may have, if more than all have

  // New memory holds ones, which are NaN as floats, so that a kernel which reads it before it is
  // written gives a wrong result.
  void poison(size_t offset, const Block& block) const {
    std::memset(base + offset, 0xff, std::min(block.bytes, kMostPoisoned));
    std::memset(base + offset + block.bytes, std::to_integer<int>(kGuard),
                block.size - block.bytes);
  }

  bool has_guards(size_t offset, const Block& block) const {
    return std::all_of(base + offset + block.bytes, base + offset + block.size,
                       [](std::byte value) { return value == kGuard; });
  }

  void protect(int access) const {
    if (high > 0) mprotect(base, round_up(high, kHugePage), access);
  }

  // Maps a block to pages that processes share, or with -1 to pages of its own.
  bool map(size_t offset, size_t size, int file, int access) const {
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    return mmap(base + offset, size, access, kind | MAP_FIXED, file, 0) != MAP_FAILED;
  }

  // Returns a place between the blocks; kReserved: there is none.
  size_t find_room(size_t size) const {
    size_t offset = 0;
    for (const auto& [begin, used] : blocks) {
      if (begin - offset >= size) break;
      offset = begin + used.size;
    }
    return offset + size > kReserved ? kReserved : offset;
  }

  // Gives the pages of a freed block back.
  void free_pages(size_t begin, size_t end) const {
    begin = round_up(begin, kHugePage);
    end = end / kHugePage * kHugePage;
    if (begin < end) madvise(base + begin, end - begin, MADV_DONTNEED);
  }
};

struct Memory {
  std::byte* base = nullptr;  // of the first device; the others follow
  std::array<DeviceMemory, kDevices> devices;
  size_t limit = size_t{4} << 30;
  std::map<const void*, size_t> pinned;
  DeviceSet open = 0;
  cudaError_t failure = cudaSuccess;
  std::recursive_mutex mutex;

  Memory() {
    void* range = mmap(nullptr, kDevices * kReserved + kHugePage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return;
    const auto address = reinterpret_cast<uintptr_t>(range);
    base = static_cast<std::byte*>(range) + (round_up(address, kHugePage) - address);
    madvise(base, kDevices * kReserved, MADV_HUGEPAGE);
    for (size_t d = 0; d < devices.size(); ++d)
      devices[d].base = base + d * kReserved;
  }

  DeviceMemory& of(int device) { return devices[static_cast<size_t>(device)]; }

  void open_only(DeviceSet wanted) {
    for (int d = 0; d < kDevices; ++d) {
      const DeviceSet bit = only_device(d);
      if ((wanted & bit) != (open & bit))
        of(d).protect((wanted & bit) != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    open = wanted;
  }
};

Memory& memory() {
  static Memory& instance = *new Memory;  // never destroyed: static tensors may use it
  return instance;
}

thread_local int current_device = 0;

std::atomic<DeviceSet> contexts = 0;  // the devices on which this process has one
std::atomic<bool> allows_one_context = false;

std::atomic<int64_t> opened_blocks = 0;
std::atomic<int64_t> property_queries = 0;

// What a handle of a block says.
struct SharedBlock {
  PagesName pages;
  int device;
  size_t size;
  size_t bytes;
};

// Adds to the number of other processes that have a shared block open, and returns it.
int add_user(const DeviceMemory::Block& block, int change) {
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, block.pages.file,
                          static_cast<off_t>(block.size));
  if (page == MAP_FAILED) return 0;
  const int users = std::atomic_ref(*static_cast<int*>(page)).fetch_add(change) + change;
  munmap(page, kPage);
  return users;
}

int num_users(const DeviceMemory::Block& block) {
  return add_user(block, 0);
}

}  // namespace

int64_t num_property_queries() {
  return property_queries;
}

int64_t num_opened_blocks() {
  return opened_blocks;
}

std::recursive_mutex& device_mutex() {
  return memory().mutex;
}

AccessWindow::AccessWindow(DeviceSet devices) : outer_(memory().open) {
  memory().open_only(devices);
}

AccessWindow::~AccessWindow() {
  memory().open_only(outer_);
}

int device_of(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  if (memory().base == nullptr || byte < memory().base) return -1;
  const size_t device = static_cast<size_t>(byte - memory().base) / kReserved;
  return device < kDevices ? static_cast<int>(device) : -1;
}

bool is_device_memory(const void* address) {
  return device_of(address) >= 0;
}

DeviceSet devices_of(const void* a, const void* b) {
  DeviceSet devices = 0;
  for (const void* address : {a, b}) {
    if (is_device_memory(address)) devices |= only_device(device_of(address));
  }
  return devices;
}

bool is_pinned_memory(const void* address) {
  const auto next = memory().pinned.upper_bound(address);
  if (next == memory().pinned.begin()) return false;
  const auto& [block, size] = *std::prev(next);
  return static_cast<const std::byte*>(address) < static_cast<const std::byte*>(block) + size;
}

bool is_allocated(const void* address, size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  const int device = device_of(address);
  if (device < 0) return false;
  const DeviceMemory& own = memory().of(device);
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - own.base);
  const auto next = own.blocks.upper_bound(offset);
  if (next == own.blocks.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return offset + bytes <= begin + block.bytes;
}

namespace {
std::atomic<bool> has_no_products = false;
std::atomic<cudaError_t> error_of_all = cudaSuccess;
std::atomic<bool> has_one_uuid = false;
}  // namespace

void fail_calls(cudaError_t error) {
  error_of_all = error;
}

cudaError_t failure_of_calls() {
  return error_of_all;
}

void refuse_products(bool refuses) {
  has_no_products = refuses;
}

bool refuses_products() {
  return has_no_products;
}

void share_uuid(bool shares) {
  has_one_uuid = shares;
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
  const cudaError_t failure = std::exchange(memory().failure, cudaSuccess);
  return failure_of_calls() != cudaSuccess ? failure_of_calls() : failure;
}

int current() {
  return current_device;
}

void allow_one_context() {
  allows_one_context = true;
}

void use_context(const char* call) {
  const DeviceSet own = only_device(current_device);
  if ((contexts & own) != 0) return;
  const bool is_first = contexts.fetch_or(own) == 0;
  if (allows_one_context && !is_first)
    report_mistake(flow::str(call, " makes a context on a second device, ", current_device));
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
    case cudaErrorCudartUnloading:
      return "cudaErrorCudartUnloading";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorMapBufferObjectFailed:
      return "cudaErrorMapBufferObjectFailed";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorHardwareStackError:
      return "cudaErrorHardwareStackError";
    case cudaErrorIllegalInstruction:
      return "cudaErrorIllegalInstruction";
    case cudaErrorMisalignedAddress:
      return "cudaErrorMisalignedAddress";
    case cudaErrorInvalidAddressSpace:
      return "cudaErrorInvalidAddressSpace";
    case cudaErrorInvalidPc:
      return "cudaErrorInvalidPc";
    case cudaErrorContextIsDestroyed:
      return "cudaErrorContextIsDestroyed";
    case cudaErrorAssert:
      return "cudaErrorAssert";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  // Not of the enumeration in cuda_runtime.h.
  if (error == cudaErrorIllegalState) return "cudaErrorIllegalState";
  if (error == cudaErrorStreamCaptureUnsupported) return "cudaErrorStreamCaptureUnsupported";
  if (error == cudaErrorStreamCaptureInvalidated) return "cudaErrorStreamCaptureInvalidated";
  if (error == cudaErrorStreamCaptureMerge) return "cudaErrorStreamCaptureMerge";
  if (error == cudaErrorStreamCaptureUnmatched) return "cudaErrorStreamCaptureUnmatched";
  if (error == cudaErrorStreamCaptureUnjoined) return "cudaErrorStreamCaptureUnjoined";
  if (error == cudaErrorStreamCaptureIsolation) return "cudaErrorStreamCaptureIsolation";
  if (error == cudaErrorCapturedEvent) return "cudaErrorCapturedEvent";
  if (error == cudaErrorStreamCaptureWrongThread) return "cudaErrorStreamCaptureWrongThread";
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
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  cuda_emulator::current_device = device;
  cuda_emulator::use_context("cudaSetDevice");
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= cuda_emulator::kDevices) return cudaErrorInvalidDevice;
  ++cuda_emulator::property_queries;
  *properties = {};
  std::strcpy(properties->name, "emulated device");
  std::strcpy(properties->uuid.bytes, "emulated");
  properties->uuid.bytes[15] = static_cast<char>(cuda_emulator::has_one_uuid ? 0 : device);
  properties->totalGlobalMem = memory().limit;
  properties->multiProcessorCount = 1;
  properties->major = 9;
  return cudaSuccess;
}

// First fit between the allocated blocks of the current device.
cudaError_t cudaMalloc(void** block, size_t bytes) {
  cuda_emulator::use_context("cudaMalloc");
  using cuda_emulator::kAlignment;
  const std::lock_guard lock(memory().mutex);
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (const cudaError_t refused = cuda_emulator::refuse_unsafe_call(); refused != cudaSuccess) {
    return refused;
  }
  const int device = cuda_emulator::current_device;
  cuda_emulator::DeviceMemory& own = memory().of(device);
  const size_t size = cuda_emulator::round_up(bytes + cuda_emulator::kGuardBytes, kAlignment);
  if (own.base == nullptr || size > memory().limit || own.in_use > memory().limit - size) {
    return cudaErrorMemoryAllocation;
  }
  const size_t offset = own.find_room(size);
  if (offset == cuda_emulator::kReserved) return cudaErrorMemoryAllocation;
  own.blocks[offset] = {size, bytes};
  own.in_use += size;
  own.high = std::max(own.high, offset + size);
  const cuda_emulator::DeviceSet bit = cuda_emulator::only_device(device);
  if ((memory().open & bit) != 0) own.protect(PROT_READ | PROT_WRITE);
  const cuda_emulator::AccessWindow window(memory().open | bit);
  own.poison(offset, {size, bytes});
  *block = own.base + offset;
  return cudaSuccess;
}

cudaError_t cudaFree(void* block) {
  cuda_emulator::use_context("cudaFree");
  if (block == nullptr) return cudaSuccess;
  const int device = cuda_emulator::device_of(block);
  if (device < 0) return cudaErrorInvalidValue;
  const std::lock_guard lock(memory().mutex);
  if (const cudaError_t refused = cuda_emulator::refuse_unsafe_call(); refused != cudaSuccess) {
    return refused;
  }
  const cudaError_t earlier = cuda_emulator::synchronize(device);
  cuda_emulator::DeviceMemory& own = memory().of(device);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(block) - own.base);
  const auto found = own.blocks.find(offset);
  if (found == own.blocks.end() || found->second.times_opened > 0) return cudaErrorInvalidValue;
  const cuda_emulator::AccessWindow window(memory().open | cuda_emulator::only_device(device));
  const cuda_emulator::DeviceMemory::Block freed = found->second;
  const bool is_intact = own.has_guards(offset, freed);
  own.in_use -= freed.size;
  own.blocks.erase(found);
  if (freed.pages.file >= 0) {
    if (cuda_emulator::num_users(freed) != 0)
      cuda_emulator::report_mistake("cudaFree: another process has the block open");
    own.map(offset, freed.size, -1, PROT_READ | PROT_WRITE);
    close(freed.pages.file);
  } else {
    own.free_pages(offset, offset + freed.size);
  }
  return earlier == cudaSuccess && !is_intact ? cudaErrorIllegalAddress : earlier;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* block) {
  cuda_emulator::use_context("cudaIpcGetMemHandle");
  const int device = cuda_emulator::device_of(block);
  if (device < 0) return cudaErrorInvalidValue;
  const std::lock_guard lock(memory().mutex);
  cuda_emulator::DeviceMemory& own = memory().of(device);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(block) - own.base);
  const auto found = own.blocks.find(offset);
  // Only what cudaMalloc has returned has a handle.
  if (found == own.blocks.end() || found->second.times_opened > 0) return cudaErrorInvalidValue;
  cuda_emulator::DeviceMemory::Block& shared = found->second;
  if (shared.pages.file < 0) {
    const cuda_emulator::AccessWindow window(memory().open | cuda_emulator::only_device(device));
    shared.pages = cuda_emulator::make_pages(shared.size + cuda_emulator::kPage);
    if (shared.pages.file < 0) return cudaErrorMemoryAllocation;
    const auto written = pwrite(shared.pages.file, block, shared.size, 0);
    if (written != static_cast<ssize_t>(shared.size)) return cudaErrorMemoryAllocation;
    own.map(offset, shared.size, shared.pages.file, PROT_READ | PROT_WRITE);
  }
  const cuda_emulator::SharedBlock named{shared.pages, device, shared.size, shared.bytes};
  static_assert(sizeof(named) <= sizeof(handle->reserved));
  std::memset(handle->reserved, 0, sizeof(handle->reserved));
  std::memcpy(handle->reserved, &named, sizeof(named));
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** block, cudaIpcMemHandle_t handle, unsigned flags) {
  cuda_emulator::use_context("cudaIpcOpenMemHandle");
  cuda_emulator::SharedBlock named;
  std::memcpy(&named, handle.reserved, sizeof(named));
  if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
  if (named.pages.process == getpid()) return cudaErrorInvalidResourceHandle;
  const char* const can_open = std::getenv("CUDA_EMULATOR_IPC");
  if (can_open != nullptr && std::strcmp(can_open, "0") == 0) return cudaErrorMapBufferObjectFailed;
  if (named.device != cuda_emulator::current_device) return cudaErrorInvalidDevice;
  const std::lock_guard lock(memory().mutex);
  cuda_emulator::DeviceMemory& own = memory().of(named.device);
  for (auto& [offset, known] : own.blocks) {
    if (known.times_opened == 0 || known.pages.process != named.pages.process ||
        known.pages.serial != named.pages.serial) {
      continue;
    }
    ++known.times_opened;
    *block = own.base + offset;
    return cudaSuccess;
  }
  const int file = cuda_emulator::open_pages(named.pages);
  const size_t offset = own.find_room(named.size);
  if (file < 0 || offset == cuda_emulator::kReserved) return cudaErrorMapBufferObjectFailed;
  const bool is_open = (memory().open & cuda_emulator::only_device(named.device)) != 0;
  own.map(offset, named.size, file, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
  own.blocks[offset] = {
      named.size, named.bytes, {named.pages.process, file, named.pages.serial}, 1};
  own.high = std::max(own.high, offset + named.size);
  cuda_emulator::add_user(own.blocks[offset], 1);
  ++cuda_emulator::opened_blocks;
  *block = own.base + offset;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* block) {
  cuda_emulator::use_context("cudaIpcCloseMemHandle");
  const int device = cuda_emulator::device_of(block);
  if (device < 0) return cudaErrorInvalidValue;
  const std::lock_guard lock(memory().mutex);
  const cudaError_t earlier = cuda_emulator::synchronize(device);
  cuda_emulator::DeviceMemory& own = memory().of(device);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(block) - own.base);
  const auto found = own.blocks.find(offset);
  if (found == own.blocks.end() || found->second.times_opened == 0) return cudaErrorInvalidValue;
  if (--found->second.times_opened > 0) return earlier;
  cuda_emulator::add_user(found->second, -1);
  const bool is_open = (memory().open & cuda_emulator::only_device(device)) != 0;
  own.map(offset, found->second.size, -1, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
  close(found->second.pages.file);
  own.blocks.erase(found);
  return earlier;
}

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  cuda_emulator::use_context("cudaMallocHost");
  const size_t size = cuda_emulator::round_up(std::max<size_t>(bytes, 1), cuda_emulator::kPage);
  const std::lock_guard lock(memory().mutex);
  if (const cudaError_t refused = cuda_emulator::refuse_unsafe_call(); refused != cudaSuccess) {
    return refused;
  }
  *block = std::aligned_alloc(cuda_emulator::kPage, size);
  if (*block == nullptr) return cudaErrorMemoryAllocation;
  memory().pinned[*block] = size;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* block) {
  cuda_emulator::use_context("cudaFreeHost");
  const std::lock_guard lock(memory().mutex);
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (const cudaError_t refused = cuda_emulator::refuse_unsafe_call(); refused != cudaSuccess) {
    return refused;
  }
  if (memory().pinned.erase(block) == 0) return cudaErrorInvalidValue;
  std::free(block);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  cuda_emulator::use_context("cudaPointerGetAttributes");
  const std::lock_guard lock(memory().mutex);
  const int device = cuda_emulator::device_of(pointer);
  if (device >= 0) {
    *attributes = {cudaMemoryTypeDevice, device};
  } else if (cuda_emulator::is_pinned_memory(pointer)) {
    *attributes = {cudaMemoryTypeHost, cuda_emulator::current_device};
  } else {
    *attributes = {cudaMemoryTypeUnregistered, -1};
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  cuda_emulator::use_context("cudaMemGetInfo");
  const std::lock_guard lock(memory().mutex);
  const size_t in_use = memory().of(cuda_emulator::current_device).in_use;
  *total_bytes = memory().limit;
  *free_bytes = memory().limit - std::min(memory().limit, in_use);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute /*attribute*/, int value) {
  constexpr int kMostShared = 227 << 10;
  if (value < 0 || value > kMostShared) return cudaErrorInvalidValue;
  const std::lock_guard lock(memory().mutex);
  memory().of(cuda_emulator::current_device).dynamic_shared[function] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cuda_emulator::check_launch(const cudaLaunchConfig_t& config, const void* kernel) {
  constexpr size_t kFreeShared = 48 << 10;  // more has to be allowed by cudaFuncSetAttribute
  const dim3 grid = config.gridDim;
  const dim3 block = config.blockDim;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > 65535 ||
      grid.z > 65535 || block.x == 0 || block.y == 0 || block.z == 0 || block.z > 64 ||
      uint64_t{block.x} * block.y * block.z > 1024) {
    return cudaErrorInvalidConfiguration;
  }
  const std::lock_guard lock(memory().mutex);
  const auto& allowed = memory().of(current_device).dynamic_shared;
  const auto own = allowed.find(kernel);
  const size_t most = own == allowed.end() ? kFreeShared : std::max(kFreeShared, own->second);
  return config.dynamicSmemBytes > most ? cudaErrorInvalidValue : cudaSuccess;
}
