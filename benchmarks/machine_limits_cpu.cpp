#include "benchmarks/machine_limits_cpu.h"

#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

namespace {

// Two units with a latency of four or five cycles need ten accumulators; more of them hide the cost
// of the surrounding loop. There are 32 registers with avx512 and 16 without.
#if FLOW_ISA == 2
constexpr int kAccumulators = 24;
#else
constexpr int kAccumulators = 12;
#endif
constexpr int kUnroll = 4;

float multiply_add(int64_t rounds) {
  const Vec<float> factor = Vec<float>::fill(0.999F);
  const Vec<float> term = Vec<float>::fill(0.001F);
  Vec<float> accumulator[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) {
    accumulator[i] = Vec<float>::fill(static_cast<float>(i));
  }
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 4
    for (int repeat = 0; repeat < kUnroll; ++repeat) {
#pragma GCC unroll 24
      for (int i = 0; i < kAccumulators; ++i) {
        accumulator[i] = fma(accumulator[i], factor, term);
      }
    }
  }
  Vec<float> total = accumulator[0];
  for (int i = 1; i < kAccumulators; ++i)
    total = total + accumulator[i];
  return sum(total);
}

float read(const float* a, int64_t n) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  constexpr int kSums = 8;
  Vec<float> sums[kSums];
  for (Vec<float>& one : sums)
    one = Vec<float>::fill(0);
  int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kSums; ++k)
      sums[k] = sums[k] + Vec<float>::load(a + i + k * kLanes);
  }
  float total = 0;
  for (const Vec<float>& one : sums)
    total += sum(one);
  for (; i < n; ++i)
    total += a[i];
  return total;
}

Vec<float> negate_element(Vec<float> a) {
  return a * Vec<float>::fill(-1.0F);
}

Vec<float> triad_element(Vec<float> b, Vec<float> c) {
  return fma(Vec<float>::fill(3.0F), c, b);
}

}  // namespace

LimitLoops limit_loops() {
  return {
      .flops_per_round = 2.0 * kUnroll * kAccumulators * static_cast<double>(Vec<float>::kLanes),
      .multiply_add = multiply_add,
      .read = read,
      .negate = [](float* a, int64_t n) { map(a, n, negate_element, a); },
      .triad = [](float* a, const float* b, const float* c,
                  int64_t n) { map(a, n, triad_element, b, c); },
      .triad_stream = [](float* a, const float* b, const float* c,
                         int64_t n) { map_stream(a, n, triad_element, b, c); }};
}

#include "ops/kernel/isa_end.h"
