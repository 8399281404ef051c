// Training steps of six models in float32: the useful FLOP/s compared with the peak of fused
// multiply-adds, and the memory that a step takes in addition to weights and optimizer state.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

#include "benchmarks/machine_limits.h"
#include "benchmarks/train_models.h"
#include "core/allocator.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/linear/gemm_backend.h"

namespace {

using flow::bench::Copies;
using flow::bench::MachineLimits;
using flow::bench::TrainModel;
using flow::ops::GemmBackend;
using flow::ops::GemmTask;

constexpr double kGiga = 1e9;
constexpr size_t kMinSteps = 3;
constexpr int kWarmUpSteps =
    2;  // in the second step the optimizer has its state and the caches are filled

double clock_seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A model on its own rank with this many threads, and the seconds of its steps. For one thread the
// time is processor time, which does not include other processes; for more threads it is wall-clock
// time.
class Training {
 public:
  Training(const TrainModel& model, Copies copies, int num_threads)
      : Training(model, copies, num_threads,
                 num_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC) {}

  Training(const TrainModel& model, Copies copies, int num_threads, clockid_t clock)
      : context_(std::make_unique<flow::RankContext>(flow::RankIdentity{}, num_threads)),
        clock_(clock) {
    const flow::RankScope scope(*context_);
    flow::manual_seed(0);
    step_ = model.make_step(copies);
    for (int i = 0; i < kWarmUpSteps; ++i)
      step_();
  }

  ~Training() {
    const flow::RankScope scope(*context_);
    step_ = nullptr;
  }

  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  void run_step() {
    const flow::RankScope scope(*context_);
    const double start = clock_seconds(clock_);
    step_();
    seconds_.push_back(clock_seconds(clock_) - start);
  }

  size_t num_steps() const { return seconds_.size(); }

  // The lower quartile, because a disturbed step is slower, and a virtual machine's clock is
  // sometimes set back.
  double step_seconds() {
    const auto quarter = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 4);
    std::nth_element(seconds_.begin(), quarter, seconds_.end());
    return *quarter;
  }

  // The peak of the allocator during a step.
  int64_t peak_bytes() {
    const flow::RankScope scope(*context_);
    flow::reset_peak_memory_stats();
    step_();
    return flow::memory_stats().peak_bytes_in_use;
  }

  // What it holds between steps: weights, optimizer state and the batch; of a compiled step, also
  // the memory that it runs in.
  int64_t held_bytes() {
    const flow::RankScope scope(*context_);
    return flow::memory_stats().bytes_in_use;
  }

 private:
  std::unique_ptr<flow::RankContext> context_;
  clockid_t clock_;
  std::function<void()> step_;
  std::vector<double> seconds_;
};

// ---- two independent processes, for comparison with two threads

constexpr std::string_view kChildFlag = "--alone=";
constexpr double kAloneSeconds = 0.5;

// The main of a child process: prints the wall-clock seconds of a step.
int run_alone(const std::string& name) {
  for (const TrainModel& model : flow::bench::train_models()) {
    if (model.name != name) continue;
    Training training(model, Copies::kAlone, 1, CLOCK_MONOTONIC);
    const double start = clock_seconds(CLOCK_MONOTONIC);
    while (training.num_steps() < kMinSteps ||
           clock_seconds(CLOCK_MONOTONIC) - start < kAloneSeconds)
      training.run_step();
    std::printf("%.9g\n", training.step_seconds());
    return 0;
  }
  return 64;
}

// Steps per second of two one-thread processes that run at the same time; 0 if they failed.
double two_processes_rate(const TrainModel& model) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + self + "' " + std::string(kChildFlag) + model.name;
  std::array<FILE*, 2> children{};
  for (FILE*& child : children)
    child = popen(command.c_str(), "r");
  double rate = 0;
  bool all_worked = true;
  for (FILE* child : children) {
    double seconds = 0;
    all_worked = all_worked && child != nullptr && std::fscanf(child, "%lf", &seconds) == 1;
    if (seconds > 0) rate += 1 / seconds;
    if (child != nullptr) pclose(child);
  }
  return all_worked ? rate : 0;
}

// ---- the matrix products alone

// Operands of one product that are larger than any cache, because in a step other products run in
// between.
class Operands {
 public:
  explicit Operands(const flow::bench::StepProduct& product)
      : task_{.transpose_a = to_transpose(product.transpose_a),
              .transpose_b = to_transpose(product.transpose_b),
              .m = product.m,
              .n = product.n,
              .k = product.k,
              .lda = product.transpose_a ? product.m : product.k,
              .ldb = product.transpose_b ? product.k : product.n,
              .ldc = product.n},
        sizes_{product.m * product.k, product.k * product.n, product.m * product.n} {
    constexpr int64_t kFloats = 4 << 20;
    sets_ = std::max<int64_t>(2, kFloats / (sizes_[0] + sizes_[1] + sizes_[2]));
    for (size_t i = 0; i < sizes_.size(); ++i)
      memory_[i] = flow::ones({sets_ * sizes_[i]});
  }

  const GemmTask<float>& next() {
    set_ = (set_ + 1) % sets_;
    task_.a = memory_[0].data<float>() + set_ * sizes_[0];
    task_.b = memory_[1].data<float>() + set_ * sizes_[1];
    task_.c = memory_[2].data<float>() + set_ * sizes_[2];
    return task_;
  }

 private:
  static flow::ops::Transpose to_transpose(bool yes) {
    return yes ? flow::ops::Transpose::kYes : flow::ops::Transpose::kNo;
  }

  GemmTask<float> task_;
  std::array<int64_t, 3> sizes_;
  std::array<flow::Tensor, 3> memory_;
  int64_t sets_ = 0;
  int64_t set_ = 0;
};

// Useful FLOP/s of a model's products, each computed by the fastest library or kernel.
double products_rate(const TrainModel& model) {
  constexpr double kSeconds = 0.02;
  constexpr size_t kMinRuns = 8;
  double flops = 0;
  double seconds = 0;
  for (const flow::bench::StepProduct& product : model.products) {
    Operands operands(product);
    double best = 0;
    for (const GemmBackend backend :
         {GemmBackend::kOwn, GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
      if (!flow::ops::has_gemm_backend<float>(backend)) continue;
      std::vector<double> runs;
      const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
      while (runs.size() < kMinRuns || clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin < kSeconds) {
        const double start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        flow::ops::gemm_with(backend, operands.next());
        runs.push_back(clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
      }
      const auto quarter = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 4);
      std::nth_element(runs.begin(), quarter, runs.end());
      if (best == 0 || *quarter < best) best = *quarter;
    }
    const auto count = static_cast<double>(product.count);
    flops +=
        2 * count * static_cast<double>(product.m * product.n) * static_cast<double>(product.k);
    seconds += count * best;
  }
  return flops / seconds;
}

// ---- rows

// The state of the running row, kept while google-benchmark calls the row again for more
// iterations.
struct Row {
  std::string name;
  std::unique_ptr<Training> training;
  std::unique_ptr<Training> eager;  // for comparison with a training that is not plain
  double two_processes_rate = 0;
  double products_rate = 0;

  // The training of the row `of`. Its first call replaces the training of the previous row.
  Training& start(const std::string& of, const TrainModel& model, Copies copies, int num_threads) {
    if (name != of) {
      const bool is_eager = copies == Copies::kAlone, is_alone = num_threads == 1;
      training = nullptr;
      eager = nullptr;
      training = std::make_unique<Training>(model, copies, num_threads);
      if (!is_eager) eager = std::make_unique<Training>(model, Copies::kAlone, num_threads);
      two_processes_rate = !is_eager || is_alone ? 0 : ::two_processes_rate(model);
      products_rate = is_eager && is_alone && !model.products.empty() ? ::products_rate(model) : 0;
      name = of;
    }
    return *training;
  }
};

void train(benchmark::State& state, const std::string& name, const TrainModel& model, Copies copies,
           int num_threads, Row& row, MachineLimits& limits) {
  Training& training = row.start(name, model, copies, num_threads);
  double peak = limits.fma_flops();
  const auto run_step = [&] {
    training.run_step();
    if (row.eager) row.eager->run_step();
  };
  for (auto _ : state)
    run_step();
  while (training.num_steps() < kMinSteps)
    run_step();
  peak = num_threads * std::max(peak, limits.fma_flops());
  const double seconds = training.step_seconds();
  flow::bench::report_rate(state, model.flops / seconds / kGiga, peak / kGiga, "GFLOP/s");
  state.counters["ms"] = 1e3 * seconds;
  // The `ratio` of a step that consists of its products only, with operands from memory.
  if (row.products_rate > 0) state.counters["products"] = row.products_rate / peak;
  if (row.eager) state.counters["vs_eager"] = row.eager->step_seconds() / seconds;
  if (row.two_processes_rate > 0) {
    state.counters["vs_two_processes"] = 1 / seconds / row.two_processes_rate;
  }
}

// How a model's memory is measured.
struct MemoryRow {
  const char* suffix;
  Copies copies;
  bool recomputes;
};

constexpr std::array kMemoryRows = {
    MemoryRow{"", Copies::kAlone, false}, MemoryRow{"/graph", Copies::kCompiled, false},
    MemoryRow{"/recompute", Copies::kRecomputed, true},
    MemoryRow{"/graph/recompute", Copies::kCompiledRecomputed, true}};

// The memory of a step in addition to weights, optimizer state and the batch. The limit is the
// memory that any step holds when backward begins.
void memory(benchmark::State& state, const std::string& name, const TrainModel& model,
            const MemoryRow& how, Row& row) {
  constexpr double kMebi = 1 << 20;
  Training& training = row.start(name, model, how.copies, 1);
  Training& plain = row.eager ? *row.eager : training;
  int64_t bytes = 0;
  for (auto _ : state)
    bytes = training.peak_bytes() - plain.held_bytes();
  const double limit = how.recomputes ? model.recompute_held_bytes : model.held_bytes;
  flow::bench::compare_time(state, static_cast<double>(bytes) / kMebi, limit / kMebi, "MiB");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "";
  if (argument.starts_with(kChildFlag)) return run_alone(argument.substr(kChildFlag.size()));
  MachineLimits limits;
  Row row;
  const std::vector<TrainModel> models = flow::bench::train_models();
  for (const TrainModel& model : models) {
    for (const Copies copies : {Copies::kAlone, Copies::kCompiled}) {
      for (const int num_threads : {1, 2}) {
        const std::string name = "train/" + model.name +
                                 (copies == Copies::kCompiled ? "/graph" : "") +
                                 (num_threads == 1 ? "" : "/threads:2");
        benchmark::RegisterBenchmark(name.c_str(), [name, &model, copies, num_threads, &row,
                                                    &limits](benchmark::State& state) {
          train(state, name, model, copies, num_threads, row, limits);
        });
      }
    }
  }
  for (const TrainModel& model : models) {
    if (model.held_bytes == 0) continue;
    for (const MemoryRow& how : kMemoryRows) {
      const std::string name = "memory/" + model.name + how.suffix;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [name, &model, &how, &row](benchmark::State& state) {
                                     memory(state, name, model, how, row);
                                   });
    }
  }
  return flow::bench::run_benchmarks(argc, argv);
}
