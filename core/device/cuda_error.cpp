#include "core/device/cuda_error.h"

#include <algorithm>
#include <iterator>

#include "core/context.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::cuda {

namespace {

std::string who() {
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  const ThreadState* state = internal::current_thread_state;
  const int64_t rank = state != nullptr ? state->context->rank() : 0;
  return str("rank ", rank, ", device ", device);
}

// Errors of a kernel after which every call of CUDA in this process fails.
bool ends_use_of_device(cudaError_t code) {
  constexpr cudaError_t kSuch[] = {
      cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,      cudaErrorAssert,
      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
      cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorLaunchFailure};
  return std::find(std::begin(kSuch), std::end(kSuch), code) != std::end(kSuch);
}

// The advice for the user. Codes that are not listed here are rare, or errors of flow itself.
const char* advice(cudaError_t code) {
  if (code == cudaErrorNoDevice) return "use device cpu, or check CUDA_VISIBLE_DEVICES";
  if (code == cudaErrorInsufficientDriver) {
    return "install a driver as new as the toolkit flow was built with, or use device cpu";
  }
  if (code == cudaErrorNoKernelImageForDevice) {
    return "build with -DCMAKE_CUDA_ARCHITECTURES=native on this machine";
  }
  if (ends_use_of_device(code)) {
    return "an earlier kernel failed and this process cannot use the device any more; run it with "
           "CUDA_LAUNCH_BLOCKING=1 to be told the call";
  }
  return "look the code up in CUDA's manual";
}

}  // namespace

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) [[likely]]
    return;
  static_cast<void>(cudaGetLastError());  // reset, so that a failure is reported only once
  const std::string text = str("[cuda] ", call, " failed: ", cudaGetErrorName(code), ", ",
                               cudaGetErrorString(code), " (", who(), "); ");
  if (code == cudaErrorMemoryAllocation) {
    throw OutOfMemory(text + "use a smaller batch or free tensors");
  }
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    throw Unsupported(text + advice(code));
  }
  throw Error(text + advice(code));
}

void warn_if_failed(cudaError_t code, const char* call) noexcept {
  if (code == cudaSuccess) return;
  // At the end of the process static objects may be destroyed after CUDA, which then has freed all.
  if (code == cudaErrorCudartUnloading || code == cudaErrorContextIsDestroyed) return;
  static_cast<void>(cudaGetLastError());
  try {
    log_warning(str("[cuda] ", call, " failed: ", cudaGetErrorString(code)));
  } catch (...) {  // no memory for the text: nothing more can be reported
    return;
  }
}

}  // namespace flow::cuda
