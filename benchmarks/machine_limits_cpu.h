// The loops that MachineLimits times; machine_limits_cpu.cpp is compiled once per instruction set.
#pragma once

#include <cstdint>

#include "ops/kernel/cpu_features.h"

namespace flow::ops {

struct LimitLoops {
  // One call of `multiply_add` does this many floating-point operations per round.
  double flops_per_round;
  // Independent multiply-adds in registers. Returns a result, so that the compiler cannot remove
  // them.
  float (*multiply_add)(int64_t rounds);
  // The sum of n elements.
  float (*read)(const float* a, int64_t n);
  // a[i] = -a[i].
  void (*negate)(float* a, int64_t n);
  // a[i] = b[i] + 3 c[i].
  void (*triad)(float* a, const float* b, const float* c, int64_t n);
  void (*triad_stream)(float* a, const float* b, const float* c, int64_t n);
};

FLOW_DECLARE_PER_ISA(LimitLoops limit_loops())

}  // namespace flow::ops
