// Device cuda: the rows of cuda_rows.h. The time of a row is that of the device's work; the program
// waits for the device once for each batch of calls. host_us is the time of the host alone: until a
// call returns whose device was idle. tools/gpu_check prints the rows next to PyTorch's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/cuda_rows.h"
#include "core/device/cuda.h"
#include "core/device/cuda_library.h"
#include "core/error.h"

namespace {

using flow::bench::CudaRow;
using flow::bench::CudaWork;

double seconds_of_batch(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    call();
  flow::cuda::synchronize();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

// Seconds per call, in the median of some batches that take about 20 ms each.
double seconds_of(const std::function<void()>& call) {
  constexpr int kBatches = 7;
  constexpr double kBatchSeconds = 0.02;
  constexpr int kMostCalls = 2000;
  seconds_of_batch(call, 2);  // the first call loads libraries, the second has a warm cache
  const double once = seconds_of_batch(call, 1);
  const int calls = std::clamp(static_cast<int>(kBatchSeconds / once), 1, kMostCalls);
  std::vector<double> seconds;
  for (int batch = 0; batch < kBatches; ++batch)
    seconds.push_back(seconds_of_batch(call, calls) / calls);
  std::nth_element(seconds.begin(), seconds.begin() + kBatches / 2, seconds.end());
  return seconds[kBatches / 2];
}

// Seconds until one call returns, in the median of some.
double host_seconds_of(const std::function<void()>& call) {
  constexpr size_t kCalls = 7;
  std::vector<double> seconds;
  while (seconds.size() < kCalls) {
    flow::cuda::synchronize();
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kCalls / 2, seconds.end());
  return seconds[kCalls / 2];
}

// `value` is the work in a second, in these units.
struct Unit {
  const char* name;
  double size;
};

Unit unit_of(CudaWork work) {
  switch (work) {
    case CudaWork::kBytes:
      return {"GB/s", 1e9};
    case CudaWork::kFlops:
      return {"TFLOP/s", 1e12};
    case CudaWork::kTokens:
      return {"tokens/s", 1};
    case CudaWork::kCalls:
      return {"calls/s", 1};
  }
  return {};
}

void measure(benchmark::State& state, const CudaRow& row) {
  const std::function<void()> call = row.make();
  double seconds = 0;
  for (auto _ : state) {
    seconds = seconds_of(call);
    state.SetIterationTime(seconds);
  }
  const Unit unit = unit_of(row.work);
  state.counters["host_us"] = 1e6 * host_seconds_of(call);
  state.counters["value"] = row.amount / seconds / unit.size;
  state.SetLabel(unit.name);
}

// A row that fails does not cost the others.
void run(benchmark::State& state, const CudaRow& row) {
  try {
    measure(state, row);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!flow::cuda::is_available()) {
    throw flow::Unsupported(
        "[bench_cuda] no CUDA device can be used on this machine; run the other benchmarks");
  }
  benchmark::AddCustomContext("device", flow::cuda::device_name(flow::cuda::current_device()));
  for (const CudaRow& row : flow::bench::cuda_rows()) {
    benchmark::RegisterBenchmark(row.name.c_str(),
                                 [row](benchmark::State& state) {
                                   run(state, row);
                                   flow::cuda::empty_cache();  // the next row has other sizes
                                 })
        ->UseManualTime()
        ->Iterations(1);
  }
  benchmark::RunSpecifiedBenchmarks();
  for (const std::string& file : flow::cuda::loaded_libraries())
    std::fprintf(stderr, "library: %s\n", file.c_str());
  return 0;
}
