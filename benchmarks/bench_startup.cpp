// The time from the start of a program to its first tensor, and its resident memory at that point.
// The baseline is the same program without a tensor.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "benchmarks/machine_limits.h"
#include "nn/flow.h"

extern char** environ;

namespace {

constexpr const char* kMakeTensor = "--make-one-tensor";
constexpr const char* kDoNothing = "--do-nothing";

struct Run {
  double milliseconds = 0;
  double megabytes = 0;
};

// Starts this program with `mode` and waits for its end.
Run start_and_wait(const char* mode) {
  char* arguments[] = {const_cast<char*>("bench_startup"), const_cast<char*>(mode), nullptr};
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return {};
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (status != 0) return {};
  return {took.count(), static_cast<double>(usage.ru_maxrss) / 1024};
}

// The best of ten warm starts.
Run best_start(const char* mode) {
  Run best{1e9, 0};
  for (int i = 0; i < 10; ++i) {
    const Run run = start_and_wait(mode);
    best.milliseconds = std::min(best.milliseconds, run.milliseconds);
    best.megabytes = std::max(best.megabytes, run.megabytes);
  }
  return best;
}

void first_tensor(benchmark::State& state) {
  Run best{1e9, 0}, nothing{1e9, 0};
  for (auto _ : state) {
    const Run run = best_start(kMakeTensor);
    best = run.milliseconds < best.milliseconds ? run : best;
    const Run floor = best_start(kDoNothing);
    nothing = floor.milliseconds < nothing.milliseconds ? floor : nothing;
  }
  flow::bench::compare_time(state, best.milliseconds, nothing.milliseconds, "ms");
  state.counters["resident_mb"] = best.megabytes;
}

BENCHMARK(first_tensor)->Name("startup/first_tensor")->Iterations(1);

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], kDoNothing) == 0) return 0;
  if (argc == 2 && std::strcmp(argv[1], kMakeTensor) == 0) {
    const flow::Tensor x = flow::ones({4, 4});
    return (x + x).sum().item<float>() == 32 ? 0 : 1;
  }
  return flow::bench::run_benchmarks(argc, argv);
}
