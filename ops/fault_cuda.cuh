// Values that a kernel finds wrong, such as an index out of range. Device code cannot throw: the
// kernel goes on as if the value were not there.
#pragma once

#include <cstdint>

#include "core/cuda_launch.h"

namespace flow::ops {

struct FaultReport {
  int64_t lowest = 0;
  int64_t highest = 0;

  __device__ void raise(int64_t /*value*/) const {}
};

inline FaultReport fault_report(const KernelContext& /*ctx*/, const char* /*op*/, int64_t lowest,
                                int64_t highest) {
  return {lowest, highest};
}

}  // namespace flow::ops
