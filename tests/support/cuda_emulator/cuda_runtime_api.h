// What flow uses of CUDA's runtime in few files.
#pragma once

#include "cuda_runtime.h"

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device);
