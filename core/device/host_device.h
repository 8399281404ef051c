// FLOW_HOST_DEVICE marks formulas that CPU and CUDA kernels share.
#pragma once

#if defined(__CUDACC__)
#define FLOW_HOST_DEVICE __host__ __device__
#else
#define FLOW_HOST_DEVICE
#endif
