#include "benchmarks/machine_limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string_view>
#include <thread>
#include <vector>

#include <time.h>

#include "benchmarks/machine_limits_cpu.h"
#include "boxing/comm/copy_bytes.h"
#include "core/context.h"
#include "ops/kernel/cpu_features.h"

namespace flow::ops {

namespace {
const LimitLoops& widest_limit_loops() {
  static const LimitLoops loops = [] {
    return widest_variant(FLOW_ISA_VARIANTS(limit_loops), detected_isa())();
  }();
  return loops;
}
}  // namespace

}  // namespace flow::ops

namespace flow::bench {

namespace {
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The shortest of the runs of f that fit into `budget` seconds, but of at least three runs.
template <class F>
double best_seconds(double budget, F f) {
  const auto begin = Clock::now();
  double best = 1e30;
  for (int run = 0; run < 3 || seconds_since(begin) < budget; ++run) {
    const auto start = Clock::now();
    f();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

// Repeats short work, so that the resolution of the clock does not matter.
int64_t repeats_for(int64_t num_bytes) {
  return std::max<int64_t>(1, (int64_t{4} << 20) / std::max<int64_t>(1, num_bytes));
}

struct CpuTimes {
  double busy = 0;
  double total = 0;
};

// The times of all processors together, in clock ticks since the system was started (proc(5)).
CpuTimes read_cpu_times() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  CpuTimes times;
  double ticks = 0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    const bool is_idle = column == 3 || column == 4;
    times.total += ticks;
    if (!is_idle) times.busy += ticks;
  }
  return times;
}

// The share of the processors that is busy while this process sleeps.
double measure_load_by_others() {
  const CpuTimes before = read_cpu_times();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const CpuTimes after = read_cpu_times();
  const double total = after.total - before.total;
  return total > 0 ? (after.busy - before.busy) / total : 0.0;
}

std::string read_cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void report(benchmark::State& state, const char* compared_with, double value, double other,
            double ratio, const std::string& unit) {
  state.counters["value"] = value;
  state.counters[compared_with] = other;
  state.counters["ratio"] = ratio;
  state.SetLabel(unit);
}

// Prints the rows and keeps those that exceed their limit.
class LimitReporter : public benchmark::ConsoleReporter {
 public:
  LimitReporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      // Timing varies by a few percent between the measurements of a row and of its limit.
      if (run.counters.contains("limit") && run.counters.at("ratio") > 1.05)
        above_limit_.push_back(run.benchmark_name());
    }
  }

  const std::vector<std::string>& above_limit() const { return above_limit_; }

 private:
  std::vector<std::string> above_limit_;
};
}  // namespace

TensorMemory::TensorMemory(int64_t num_floats, float value)
    : size_(num_floats),
      storage_(Storage::allocate(thread_state().context->allocator(),
                                 static_cast<size_t>(num_floats) * sizeof(float))) {
  std::fill_n(data(), num_floats, value);
}

float* MachineLimits::reserve(int64_t num_floats) {
  if (memory_.size() < num_floats) memory_ = TensorMemory(num_floats, 1.0F);
  return memory_.data();
}

// The lower quartile of runs in processor time, which is also how the rows are measured. In the
// shortest run a virtual machine's clock may have been set back, up to an eighth below the others.
double MachineLimits::fma_flops() {
  constexpr int64_t kRounds = 5000;
  const ops::LimitLoops& loops = ops::widest_limit_loops();
  const double budget = fma_flops_ == 0 ? 0.2 : 0.02;
  float result = 0;
  std::vector<double> runs;
  const double begin = thread_seconds();
  while (runs.size() < 8 || thread_seconds() - begin < budget) {
    const double start = thread_seconds();
    result += loops.multiply_add(kRounds);
    runs.push_back(thread_seconds() - start);
  }
  benchmark::DoNotOptimize(result);
  const auto quarter = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 4);
  std::nth_element(runs.begin(), quarter, runs.end());
  const double seconds = *quarter;
  fma_flops_ = std::max(fma_flops_, loops.flops_per_round * kRounds / seconds);
  return fma_flops_;
}

double MachineLimits::triad_bytes(int64_t num_floats) {
  const ops::LimitLoops& loops = ops::widest_limit_loops();
  const int64_t stride = (num_floats + 1023) / 1024 * 1024 + 1024;
  float* a = reserve(3 * stride);
  const int64_t num_bytes = 3 * num_floats * static_cast<int64_t>(sizeof(float));
  const int64_t repeats = repeats_for(num_bytes);
  double& best = triad_bytes_[num_floats];
  for (auto* triad : {loops.triad, loops.triad_stream}) {
    const double seconds = best_seconds(best == 0 ? 0.1 : 0.02, [&] {
      for (int64_t i = 0; i < repeats; ++i)
        triad(a, a + stride, a + 2 * stride, num_floats);
      benchmark::ClobberMemory();
    });
    best = std::max(best, static_cast<double>(num_bytes * repeats) / seconds);
  }
  return best;
}

double MachineLimits::copy_bytes(int64_t num_bytes) {
  const int64_t num_floats = num_bytes / static_cast<int64_t>(sizeof(float)) + 1024;
  float* from = reserve(2 * num_floats);
  const int64_t repeats = repeats_for(num_bytes);
  double& best = copy_bytes_[num_bytes];
  const double seconds = best_seconds(best == 0 ? 0.1 : 0.02, [&] {
    for (int64_t i = 0; i < repeats; ++i) {
      std::memcpy(from + num_floats, from, static_cast<size_t>(num_bytes));
      benchmark::ClobberMemory();
    }
  });
  best = std::max(best, 2.0 * static_cast<double>(num_bytes * repeats) / seconds);
  return best;
}

double MachineLimits::read_bytes(int64_t num_floats) {
  const ops::LimitLoops& loops = ops::widest_limit_loops();
  const float* a = reserve(num_floats);
  const int64_t num_bytes = num_floats * static_cast<int64_t>(sizeof(float));
  const int64_t repeats = repeats_for(num_bytes);
  double& best = read_bytes_[num_floats];
  float total = 0;
  const double seconds = best_seconds(best == 0 ? 0.1 : 0.02, [&] {
    for (int64_t i = 0; i < repeats; ++i)
      total += loops.read(a, num_floats);
  });
  benchmark::DoNotOptimize(total);
  best = std::max(best, static_cast<double>(num_bytes * repeats) / seconds);
  return best;
}

double MachineLimits::write_bytes(int64_t num_bytes) {
  float* to = reserve(num_bytes / static_cast<int64_t>(sizeof(float)) + 1);
  const int64_t repeats = repeats_for(num_bytes);
  double& best = write_bytes_[num_bytes];
  const double seconds = best_seconds(best == 0 ? 0.1 : 0.02, [&] {
    for (int64_t i = 0; i < repeats; ++i) {
      std::memset(static_cast<void*>(to), 0, static_cast<size_t>(num_bytes));
      benchmark::ClobberMemory();
    }
  });
  best = std::max(best, static_cast<double>(num_bytes * repeats) / seconds);
  return best;
}

double MachineLimits::negate_bytes(int64_t num_floats) {
  const ops::LimitLoops& loops = ops::widest_limit_loops();
  float* a = reserve(num_floats);
  const int64_t num_bytes = 2 * num_floats * static_cast<int64_t>(sizeof(float));
  const int64_t repeats = repeats_for(num_bytes);
  double& best = negate_bytes_[num_floats];
  const double seconds = best_seconds(best == 0 ? 0.1 : 0.02, [&] {
    for (int64_t i = 0; i < repeats; ++i) {
      loops.negate(a, num_floats);
      benchmark::ClobberMemory();
    }
  });
  best = std::max(best, static_cast<double>(num_bytes * repeats) / seconds);
  return best;
}

double MachineLimits::move_bytes(int64_t num_bytes) {
  const int64_t num_floats = std::max<int64_t>(3, num_bytes / static_cast<int64_t>(sizeof(float)));
  return std::max({read_bytes(num_floats), write_bytes(num_bytes), triad_bytes(num_floats / 3),
                   copy_bytes(num_bytes / 2), negate_bytes((num_floats + 1) / 2)});
}

double copy_bytes_together(int64_t num_bytes, const std::function<void()>& meet) {
  constexpr int kRounds = 9;
  const int64_t num_floats = num_bytes / static_cast<int64_t>(sizeof(float)) + 1;
  const TensorMemory from(num_floats, 1.0F), to(num_floats, 0.0F);
  const auto* source = reinterpret_cast<const std::byte*>(from.data());
  auto* target = reinterpret_cast<std::byte*>(to.data());
  const int64_t repeats = repeats_for(num_bytes);
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    for (auto* copy : {boxing::copy_bytes, boxing::stream_bytes}) {
      meet();
      const auto start = Clock::now();
      for (int64_t i = 0; i < repeats; ++i) {
        copy(target, source, num_bytes);
        benchmark::ClobberMemory();
      }
      best = std::min(best, seconds_since(start));
    }
  }
  return 2.0 * static_cast<double>(num_bytes * repeats) / best;
}

void report_rate(benchmark::State& state, double value, double limit, const std::string& unit) {
  report(state, "limit", value, limit, value / limit, unit);
}

void report_time(benchmark::State& state, double value, double limit, const std::string& unit) {
  report(state, "limit", value, limit, limit / value, unit);
}

void compare_rate(benchmark::State& state, double value, double baseline, const std::string& unit) {
  report(state, "baseline", value, baseline, value / baseline, unit);
}

void compare_time(benchmark::State& state, double value, double baseline, const std::string& unit) {
  report(state, "baseline", value, baseline, baseline / value, unit);
}

void add_machine_context(int num_threads) {
  benchmark::AddCustomContext("cpu", read_cpu_name());
  benchmark::AddCustomContext("isa", std::string(ops::to_string(ops::active_isa())));
  benchmark::AddCustomContext("threads", std::to_string(num_threads));
  const int64_t percent = std::lround(100.0 * measure_load_by_others());
  benchmark::AddCustomContext("load_by_others", std::to_string(percent) + " % of all cores");
}

int run_benchmarks(int argc, char** argv, int num_threads) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  add_machine_context(num_threads);
  LimitReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  for (const std::string& row : reporter.above_limit())
    std::cerr << row << " is above 1.05 of its limit: one of the two was measured wrongly\n";
  return reporter.above_limit().empty() ? 0 : 1;
}

}  // namespace flow::bench
