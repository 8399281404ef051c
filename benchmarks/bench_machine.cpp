// The limits of this machine, which the other programs use, as separate rows.
#include <string>

#include "benchmarks/machine_limits.h"

namespace {

using flow::bench::MachineLimits;

constexpr double kGiga = 1e9;
constexpr int64_t kSizes[] = {int64_t{1} << 12, int64_t{1} << 16, int64_t{1} << 20,
                              int64_t{1} << 24};

template <class F>
void add_row(const std::string& name, const std::string& unit, F measure) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 double value = 0;
                                 for (auto _ : state)
                                   value = measure() / kGiga;
                                 flow::bench::report_rate(state, value, value, unit);
                               })
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  MachineLimits limits;
  add_row("limit/fma", "GFLOP/s", [&limits] { return limits.fma_flops(); });
  for (const int64_t size : kSizes) {
    add_row("limit/triad/" + std::to_string(size), "GB/s",
            [&limits, size] { return limits.triad_bytes(size); });
    add_row("limit/memcpy/" + std::to_string(4 * size), "GB/s",
            [&limits, size] { return limits.copy_bytes(4 * size); });
  }
  return flow::bench::run_benchmarks(argc, argv);
}
