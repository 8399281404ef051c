// The cost of a call in addition to its kernel, for 4 × 4 float tensors on one thread. The baseline
// of a row is the same arithmetic on newly allocated memory, without a library.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "autograd/engine.h"
#include "benchmarks/machine_limits.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"

namespace {

using flow::Tensor;

constexpr int64_t kFloats = 16;

// Seconds of one addition of 16 floats into memory that is allocated and freed.
double plain_add_seconds() {
  static const double seconds = [] {
    std::vector<float> a(kFloats, 1), b(kFloats, 2);
    constexpr int kCalls = 20000;
    double best = 1;
    for (int repetition = 0; repetition < 10; ++repetition) {
      const auto start = std::chrono::steady_clock::now();
      for (int call = 0; call < kCalls; ++call) {
        auto* c = static_cast<float*>(std::malloc(kFloats * sizeof(float)));
        for (int64_t i = 0; i < kFloats; ++i) {
          c[i] = a[static_cast<size_t>(i)] + b[static_cast<size_t>(i)];
        }
        benchmark::DoNotOptimize(c);
        benchmark::ClobberMemory();
        std::free(c);
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count() / kCalls);
    }
    return best;
  }();
  return seconds;
}

// Runs `body` in blocks and reports the microseconds per op of the best block, because other
// processes only make a block slower.
template <class Body>
void best_block(benchmark::State& state, int64_t ops_per_call, double baseline_us, Body body) {
  constexpr int kCallsPerBlock = 500;
  double best = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < kCallsPerBlock; ++call)
      body();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / static_cast<double>(kCallsPerBlock * ops_per_call));
  }
  flow::bench::compare_time(state, best, baseline_us, "us/op");
}

void add_nograd(benchmark::State& state) {
  const Tensor a = flow::ones({4, 4}), b = flow::ones({4, 4});
  best_block(state, 1, plain_add_seconds() * 1e6,
             [&] { benchmark::DoNotOptimize(flow::add(a, b)); });
}

void add_recorded(benchmark::State& state) {
  const Tensor a = flow::ones({4, 4}, {.requires_grad = true}), b = flow::ones({4, 4});
  best_block(state, 1, plain_add_seconds() * 1e6,
             [&] { benchmark::DoNotOptimize(flow::add(a, b)); });
}

// Additions and multiplications in turn. The time is per op of the chain, forward and backward
// together.
void chain_forward_backward(benchmark::State& state) {
  constexpr int64_t kOps = 20;
  const Tensor x = flow::ones({4, 4}, {.requires_grad = true}), w = flow::full({4, 4}, 0.9);
  const Tensor seed = flow::ones({4, 4});
  best_block(state, kOps, 3 * plain_add_seconds() * 1e6, [&] {
    Tensor y = x;
    for (int64_t i = 0; i < kOps / 2; ++i)
      y = flow::mul(flow::add(y, w), w);
    flow::backward({y}, {seed});
    x.set_grad(Tensor());
  });
}

// Global tensors whose layout does not change, on the first of two thread ranks. No data moves.
void add_global(benchmark::State& state, flow::Sbp sbp) {
  flow::run_ranks(2, [&] {
    if (flow::env::rank() != 0) return;
    const flow::TensorOptions options{.placement = flow::Placement("cpu", {0, 1}), .sbp = sbp};
    const Tensor a = flow::ones({4, 4}, options), b = flow::ones({4, 4}, options);
    best_block(state, 1, plain_add_seconds() * 1e6,
               [&] { benchmark::DoNotOptimize(flow::add(a, b)); });
  });
}

BENCHMARK(add_nograd)->Name("dispatch/add4x4/nograd");
BENCHMARK(add_recorded)->Name("dispatch/add4x4/recorded");
BENCHMARK_CAPTURE(add_global, B, flow::sbp::broadcast)->Name("dispatch/global_add4x4/B");
BENCHMARK_CAPTURE(add_global, S0, flow::sbp::split(0))->Name("dispatch/global_add4x4/S0");
BENCHMARK(chain_forward_backward)->Name("dispatch/chain20/fwd+bwd");

}  // namespace

int main(int argc, char** argv) {
  return flow::bench::run_benchmarks(argc, argv);
}
