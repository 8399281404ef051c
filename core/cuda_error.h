// Errors of the CUDA runtime as flow's exceptions.
#pragma once

#include <cuda_runtime.h>

namespace flow::cuda {

// Throws for any code but cudaSuccess: OutOfMemory, Unsupported where there is no usable device or
// driver, else Error, with the call, CUDA's own words, rank and device, and what to do.
void check(cudaError_t code, const char* call);
// As check for places that must not throw (destructors): logs.
void warn_if_failed(cudaError_t code, const char* call) noexcept;

}  // namespace flow::cuda

#define FLOW_CUDA_CALL(call) ::flow::cuda::check((call), #call)
