// The part of CUDA's runtime that flow uses, as host code, so that device cuda can be tested
// without a GPU. In builds with FLOW_CUDA=EMULATED, #include <cuda_runtime.h> finds this file.
//
// In addition to running kernels it checks that device memory is used only in kernels and copies
// (any other access faults), and that all threads of a block reach each barrier. The work of a
// stream runs as late as possible: when the program waits for it. Each device has memory of its
// own: a kernel that touches the memory of another device faults, and a kernel or an event on a
// stream of another device than the current one is an error.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "device_code.h"

// Pieces of copies and sums are smaller, so that small tests have many.
#define FLOW_CUDA_EMULATED 1

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorMapBufferObjectFailed = 205,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
};

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct EmulatedStream;
struct EmulatedEvent;
using cudaStream_t = EmulatedStream*;
using cudaEvent_t = EmulatedEvent*;

constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaEventInterprocess = 4;
constexpr unsigned cudaIpcMemLazyEnablePeerAccess = 1;

struct cudaIpcMemHandle_t {
  char reserved[64];
};

struct cudaIpcEventHandle_t {
  char reserved[64];
};

struct cudaUUID_t {
  char bytes[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem;
  int multiProcessorCount;
  int major;
  int minor;
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
};

struct cudaLaunchAttribute {};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceSynchronize();

cudaError_t cudaMalloc(void** block, size_t bytes);
cudaError_t cudaFree(void* block);
cudaError_t cudaMallocHost(void** block, size_t bytes);
cudaError_t cudaFreeHost(void* block);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, size_t bytes, cudaStream_t stream);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* block);
cudaError_t cudaIpcOpenMemHandle(void** block, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void* block);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle);

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value);

namespace cuda_emulator {

// Sets the memory of each device; allocations beyond it fail. For tests of running out of memory.
void set_device_memory(size_t bytes);

// Whether all devices have the UUID of device 0. Default: false.
void share_uuid(bool shares);

// The pinned host memory that is allocated.
size_t pinned_bytes();

// Whether products are refused, as by a library that has no algorithm for them. Default: false.
void refuse_products(bool refuses);
bool refuses_products();

// Makes calls fail with this error, as after an illegal access of a kernel, or when the process
// ends. Default: cudaSuccess, none.
void fail_calls(cudaError_t error);

// Queues host code as if it were a kernel: it may use the memory of the stream's device, which must
// be the current one.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
// Runs all threads of all blocks of a kernel, one block after another.
cudaError_t run_grid(dim3 grid, dim3 block, size_t shared_bytes,
                     const std::function<void()>& thread);
// Whether the current device takes the launch of a kernel.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel);
// Records an error that run_grid found; the next function that reports errors returns it.
void report_failure(cudaError_t error);

// Parameters are placed one after the other, each at a multiple of its alignment.
template <class... Parameters>
constexpr size_t size_of_parameters() {
  size_t size = 0;
  ((size = (size + alignof(Parameters) - 1) / alignof(Parameters) * alignof(Parameters) +
           sizeof(Parameters)),
   ...);
  return size;
}

}  // namespace cuda_emulator

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert(cuda_emulator::size_of_parameters<Parameters...>() <= 4096,
                "not every device takes more bytes of parameters");
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  const cudaLaunchConfig_t launched = *config;
  const cudaError_t refused =
      cuda_emulator::check_launch(launched, reinterpret_cast<const void*>(kernel));
  if (refused != cudaSuccess) return refused;
  return cuda_emulator::enqueue(launched.stream, [kernel, values, launched] {
    cuda_emulator::report_failure(cuda_emulator::run_grid(launched.gridDim, launched.blockDim,
                                                          launched.dynamicSmemBytes,
                                                          [&] { std::apply(kernel, values); }));
  });
}
