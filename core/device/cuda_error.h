// Turns error codes of the CUDA runtime into flow's exceptions.
#pragma once

#include <cuda_runtime.h>

namespace flow::cuda {

// Throws unless `code` is cudaSuccess: OutOfMemory, Unsupported if there is no usable device or
// driver, else Error. The message holds the call, CUDA's own message, the rank, the device, and
// what to do.
void check(cudaError_t code, const char* call);
// Like check(), but logs instead of throwing, and ignores that CUDA has shut down; for destructors.
void warn_if_failed(cudaError_t code, const char* call) noexcept;

}  // namespace flow::cuda

#define FLOW_CUDA_CALL(call) ::flow::cuda::check((call), #call)
