// Device cuda: copies, products and elementwise functions, the cost of a call, and the training of
// a small network. The time of a row is that of the device's work; the program waits for the device
// once for each batch of calls.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/device/cuda.h"
#include "core/error.h"
#include "nn/flow.h"

namespace {

using flow::Tensor;

const flow::TensorOptions kOnDevice{.device = "cuda"};

// Seconds per call, in the best of some batches.
template <class Call>
double seconds_of(const Call& call) {
  constexpr int kBatches = 5;
  constexpr int kCalls = 20;
  call();
  flow::cuda::synchronize();
  double best = 1e12;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
      call();
    flow::cuda::synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

// `value` is work / seconds, in units of `unit`.
template <class Call>
void report(benchmark::State& state, double work, const char* unit, const Call& call) {
  double seconds = 0;
  for (auto _ : state) {
    seconds = seconds_of(call);
    state.SetIterationTime(seconds);
  }
  state.counters["value"] = work / seconds;
  state.SetLabel(unit);
}

void gemm(benchmark::State& state, flow::DType dtype) {
  const int64_t n = state.range(0);
  const Tensor a = flow::cast(flow::randn({n, n}, kOnDevice), dtype);
  const Tensor b = flow::cast(flow::randn({n, n}, kOnDevice), dtype);
  report(state, 2e-12 * static_cast<double>(n * n * n), "TFLOP/s",
         [&] { benchmark::DoNotOptimize(flow::matmul(a, b)); });
}

void add(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Tensor a = flow::ones({n}, kOnDevice);
  report(state, 12e-9 * static_cast<double>(n), "GB/s",
         [&] { benchmark::DoNotOptimize(flow::add(a, a)); });
}

void sum(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Tensor a = flow::ones({n}, kOnDevice);
  report(state, 4e-9 * static_cast<double>(n), "GB/s",
         [&] { benchmark::DoNotOptimize(flow::sum(a)); });
}

void transpose(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Tensor a = flow::ones({n, n}, kOnDevice);
  report(state, 8e-9 * static_cast<double>(n * n), "GB/s",
         [&] { benchmark::DoNotOptimize(a.t().clone()); });
}

void move(benchmark::State& state, const char* from, const char* to) {
  const int64_t n = state.range(0);
  const Tensor a = flow::ones({n}, {.device = from});
  report(state, 4e-9 * static_cast<double>(n), "GB/s", [&] { benchmark::DoNotOptimize(a.to(to)); });
}

void call(benchmark::State& state) {
  const Tensor a = flow::ones({4, 4}, kOnDevice);
  report(state, 1e-6, "calls/us", [&] { benchmark::DoNotOptimize(flow::add(a, a)); });
}

void skeleton(benchmark::State& state) {
  const Tensor x = flow::randn({512, 784}, kOnDevice);
  const Tensor target = flow::randn({512, 10}, kOnDevice);
  Tensor w1 = flow::mul(flow::randn({784, 512}, kOnDevice), 0.03);
  Tensor w2 = flow::mul(flow::randn({512, 10}, kOnDevice), 0.03);
  w1.requires_grad_();
  w2.requires_grad_();
  flow::optim::SGD sgd({w1, w2}, {.lr = 0.01, .momentum = 0.9});
  report(state, 1, "steps/s", [&] {
    const Tensor loss = flow::mse_loss(flow::matmul(flow::relu(flow::matmul(x, w1)), w2), target);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  });
}

BENCHMARK_CAPTURE(gemm, float32, flow::DType::kFloat32)->Arg(1024)->Arg(4096)->UseManualTime();
BENCHMARK_CAPTURE(gemm, bfloat16, flow::DType::kBFloat16)->Arg(4096)->UseManualTime();
BENCHMARK(add)->Arg(1 << 26)->UseManualTime();
BENCHMARK(sum)->Arg(1 << 26)->UseManualTime();
BENCHMARK(transpose)->Arg(8192)->UseManualTime();
BENCHMARK_CAPTURE(move, to_device, "cpu", "cuda")->Arg(1 << 24)->UseManualTime();
BENCHMARK_CAPTURE(move, to_host, "cuda", "cpu")->Arg(1 << 24)->UseManualTime();
BENCHMARK(call)->UseManualTime();
BENCHMARK(skeleton)->UseManualTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!flow::cuda::is_available()) {
    throw flow::Unsupported(
        "[bench_cuda] no CUDA device can be used on this machine; run the other benchmarks");
  }
  benchmark::AddCustomContext("device", flow::cuda::device_name(flow::cuda::current_device()));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
