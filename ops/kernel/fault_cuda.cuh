// Lets kernels report invalid values, such as an index out of range.
#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"

namespace flow::ops {

// The faults of one call. `op` is a string literal.
struct FaultReport {
  cuda::Fault* fault = nullptr;
  const char* op = nullptr;
  int64_t lowest = 0;
  int64_t highest = 0;

  // Keeps the first value of all threads and calls.
  __device__ void raise(int64_t value) const {
    if (atomicCAS(&fault->state, 0, cuda::Fault::kBeingWritten) != 0) return;
    fault->value = value;
    fault->lowest = lowest;
    fault->highest = highest;
    fault->op = op;
    __threadfence_system();
    atomicExch(&fault->state, cuda::Fault::kWhole);
  }
};

inline FaultReport fault_report(const KernelContext& ctx, const char* op, int64_t lowest,
                                int64_t highest) {
  return {cuda::rank_device(ctx.rank).fault(), op, lowest, highest};
}

}  // namespace flow::ops
