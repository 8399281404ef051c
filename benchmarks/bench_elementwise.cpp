// Functions of dense float32 tensors on one thread, including the allocation of the result. The sum
// of two tensors that are larger than the caches is compared with the triad, and functions of data
// in the L2 cache with memcpy.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "benchmarks/machine_limits.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/norm.h"
#include "ops/norm/softmax.h"
#include "ops/random/random.h"

namespace {

using flow::Tensor;
using flow::bench::MachineLimits;

constexpr double kGiga = 1e9;
constexpr int64_t kFloatBytes = 4;
constexpr int64_t kRowLength = 512;

MachineLimits& limits() {
  static MachineLimits instance;
  return instance;
}

// Reports the bytes per second of the best block of calls, because other processes only make a
// block slower. The limit is measured between the blocks, so that both suffer the same
// disturbances.
template <class Body, class Limit>
void report_best(benchmark::State& state, int64_t bytes, Limit limit, Body body) {
  const int64_t calls = std::max<int64_t>(1, (int64_t{4} << 20) / bytes);
  constexpr int kBlocksPerLimit = 32;
  double best = 1e30;
  int block = 0;
  benchmark::DoNotOptimize(body());  // memory that was never used takes up to 0.8 s for its pages
  for (auto _ : state) {
    if (block++ % kBlocksPerLimit == 0) limit();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t call = 0; call < calls; ++call)
      benchmark::DoNotOptimize(body());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / static_cast<double>(calls));
  }
  flow::bench::report_rate(state, static_cast<double>(bytes) / best / kGiga, limit() / kGiga,
                           "GB/s");
}

void add_rows(const std::string& name, int64_t n) {
  benchmark::RegisterBenchmark((name + "/" + std::to_string(n)).c_str(), [n](benchmark::State& s) {
    const Tensor a = flow::rand({n}), b = flow::rand({n});
    report_best(
        s, 3 * kFloatBytes * n, [n] { return limits().triad_bytes(n); },
        [&] { return flow::add(a, b); });
  });
}

void function_rows(const std::string& name,
                   const std::function<Tensor(const Tensor& x)>& function) {
  constexpr int64_t kElements = int64_t{1} << 16;
  const std::string row = "kernel/" + name + "/" + std::to_string(kElements);
  benchmark::RegisterBenchmark(row.c_str(), [function](benchmark::State& state) {
    const Tensor x = flow::randn({kElements / kRowLength, kRowLength});
    report_best(
        state, 2 * kFloatBytes * kElements,
        [] { return limits().copy_bytes(kElements * kFloatBytes); }, [&] { return function(x); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  flow::RankContext one_thread({}, 1);
  const flow::RankScope scope(one_thread);
  add_rows("kernel/add", int64_t{1} << 16);
  add_rows("kernel/add", int64_t{1} << 24);
  function_rows("exp", [](const Tensor& x) { return flow::exp(x); });
  function_rows("tanh", [](const Tensor& x) { return flow::tanh(x); });
  function_rows("sigmoid", [](const Tensor& x) { return flow::sigmoid(x); });
  function_rows("gelu_tanh",
                [](const Tensor& x) { return flow::gelu(x, {.approximate = "tanh"}); });
  function_rows("gelu_erf", [](const Tensor& x) { return flow::gelu(x); });
  function_rows("softmax", [](const Tensor& x) { return flow::softmax(x, 1); });
  function_rows("layer_norm", [](const Tensor& x) { return flow::layer_norm(x, {kRowLength}); });
  return flow::bench::run_benchmarks(argc, argv);
}
