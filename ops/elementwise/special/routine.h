// FLOW_ROUTINE marks a function of both devices that CUDA kernels call rather than inline: it is
// long, and many kernels use it.
#pragma once

#include "core/device/host_device.h"

#if defined(__CUDACC__)
#define FLOW_ROUTINE __host__ __device__ __noinline__
#else
#define FLOW_ROUTINE
#endif
