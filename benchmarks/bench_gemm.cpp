// Matrix products of float on one thread, as CPU ops compute them: square ones, and those of few
// rows with a large matrix, such as a layer with a small batch. The same run also measures flow's
// own kernels and each library separately: own, onednn and openblas in GFLOP/s. vs_best_library
// compares the op with the faster of the two libraries, own_vs_best flow's own kernel.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <time.h>

#include "benchmarks/machine_limits.h"
#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/openblas.h"

namespace {

using flow::bench::MachineLimits;
using flow::ops::GemmBackend;
using flow::ops::GemmTask;
using flow::ops::Transpose;

struct Sizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

constexpr std::array<int64_t, 7> kSizes = {32, 64, 128, 256, 512, 1024, 2048};
// m rows, n columns and the length k of each sum.
constexpr std::array<Sizes, 7> kFewRows = {{{1, 4096, 4096},
                                            {4, 4096, 4096},
                                            {8, 4096, 4096},
                                            {16, 4096, 4096},
                                            {32, 4096, 4096},
                                            {16, 512, 512},
                                            {16, 2048, 512}}};

struct Form {
  const char* name;
  Transpose a;
  Transpose b;
};

constexpr std::array<Form, 3> kForms = {Form{"NN", Transpose::kNo, Transpose::kNo},
                                        Form{"NT", Transpose::kNo, Transpose::kYes},
                                        Form{"TN", Transpose::kYes, Transpose::kNo}};

// The CPU time of this thread, which does not include the time that other processes take.
double seconds_now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of one product by flow and by the fastest library: the lower quartile of interleaved
// rounds. The minimum would be wrong, because a virtual machine's clock is sometimes set back by
// time that the host took earlier.
class Contest {
 public:
  static constexpr double kNever = 1e9;

  Contest(const Form& form, const Sizes& sizes)
      : a_(sizes.m * sizes.k, 0.5F),
        b_(sizes.k * sizes.n, 0.25F),
        c_(sizes.m * sizes.n, 0.0F),
        task_({.transpose_a = form.a,
               .transpose_b = form.b,
               .m = sizes.m,
               .n = sizes.n,
               .k = sizes.k,
               .a = a_.data(),
               .lda = form.a == Transpose::kYes ? sizes.m : sizes.k,
               .b = b_.data(),
               .ldb = form.b == Transpose::kYes ? sizes.k : sizes.n,
               .c = c_.data(),
               .ldc = sizes.n}),
        calls_(static_cast<int>(kBlockFlops / flops()) + 1) {}

  double flops() const { return 2.0 * static_cast<double>(task_.m * task_.n * task_.k); }

  double flow_seconds() const { return quartile(flow_); }

  double library_seconds() const {
    return std::min(seconds(GemmBackend::kOneDnn), seconds(GemmBackend::kOpenBlas));
  }

  // Seconds of one product by one back end, or kNever if it is absent.
  double seconds(GemmBackend backend) const {
    const auto at = std::find(kBackends.begin(), kBackends.end(), backend) - kBackends.begin();
    return quartile(backends_[static_cast<size_t>(at)]);
  }

  bool has_library() const { return library_seconds() < kNever; }

  void round() {
    const auto on_this_thread = [](int64_t begin, int64_t end, int64_t, const auto& body) {
      body(begin, end);
    };
    take_time(flow_, [&] { flow::ops::gemm_parallel(on_this_thread, task_); });
    for (size_t i = 0; i < kBackends.size(); ++i) {
      if (!flow::ops::has_gemm_backend<float>(kBackends[i])) continue;
      take_time(backends_[i], [&] { flow::ops::gemm_with(kBackends[i], task_); });
    }
  }

 private:
  static constexpr std::array kBackends = {GemmBackend::kOwn, GemmBackend::kOneDnn,
                                           GemmBackend::kOpenBlas};
  static constexpr double kBlockFlops = 5e6;  // about 50 us, far above the resolution of the clock

  template <class Body>
  void take_time(std::vector<double>& times, const Body& body) {
    const double start = seconds_now();
    for (int call = 0; call < calls_; ++call)
      body();
    times.push_back((seconds_now() - start) / calls_);
  }

  static double quartile(std::vector<double> times) {
    if (times.empty()) return kNever;
    const auto quarter = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
    std::nth_element(times.begin(), quarter, times.end());
    return *quarter;
  }

  flow::bench::TensorMemory a_, b_, c_;
  GemmTask<float> task_;
  int calls_ = 1;
  std::vector<double> flow_;
  std::array<std::vector<double>, kBackends.size()> backends_;
};

// What each row found.
struct Ratios {
  double op = 0;
  double own = 0;
};

using Summary = std::map<std::string, Ratios>;

void sgemm(benchmark::State& state, const Form& form, const Sizes& sizes, MachineLimits& limits,
           Summary& summary) {
  constexpr int kMinRounds = 5;
  constexpr double kMinSeconds = 0.3;
  Contest contest(form, sizes);
  double limit = limits.fma_flops();
  const double start = seconds_now();
  int rounds = 0;
  for (auto _ : state) {
    contest.round();
    ++rounds;
  }
  for (; rounds < kMinRounds || seconds_now() - start < kMinSeconds; ++rounds)
    contest.round();
  limit = std::max(limit, limits.fma_flops());
  constexpr double kGiga = 1e9;
  flow::bench::report_rate(state, contest.flops() / contest.flow_seconds() / kGiga, limit / kGiga,
                           "GFLOP/s");
  for (const auto& [name, backend] : {std::pair{"own", GemmBackend::kOwn},
                                      {"onednn", GemmBackend::kOneDnn},
                                      {"openblas", GemmBackend::kOpenBlas}}) {
    const double seconds = contest.seconds(backend);
    if (seconds < Contest::kNever) state.counters[name] = contest.flops() / seconds / kGiga;
  }
  if (!contest.has_library()) return;
  const double best = contest.library_seconds();
  const Ratios ratios = {best / contest.flow_seconds(), best / contest.seconds(GemmBackend::kOwn)};
  state.counters["vs_best_library"] = ratios.op;
  state.counters["own_vs_best"] = ratios.own;
  summary[form.name + (' ' + std::to_string(sizes.m)) + ' ' + std::to_string(sizes.n) + ' ' +
          std::to_string(sizes.k)] = ratios;
}

// The geometric mean and the minimum of one of the ratios over the rows above.
void summarise(benchmark::State& state, const Summary& summary, const std::string& name,
               double Ratios::*ratio) {
  if (summary.empty()) return;
  double log_sum = 0;
  double least = 1e9;
  for (const auto& [row, ratios] : summary) {
    log_sum += std::log(ratios.*ratio);
    least = std::min(least, ratios.*ratio);
  }
  state.counters[name] = std::exp(log_sum / static_cast<double>(summary.size()));
  state.counters[name + "_least"] = least;
}

void summarise(benchmark::State& state, const Summary& summary) {
  for (auto _ : state) {
    summarise(state, summary, "vs_best_library", &Ratios::op);
    summarise(state, summary, "own_vs_best", &Ratios::own);
  }
  state.SetLabel("geometric mean of " + std::to_string(summary.size()) + " rows");
}

}  // namespace

int main(int argc, char** argv) {
  MachineLimits limits;
  Summary summary;
  Summary few_rows;
  benchmark::AddCustomContext("onednn", flow::ops::onednn_description());
  benchmark::AddCustomContext("openblas", flow::ops::openblas_description());
  if (!flow::ops::has_onednn() && !flow::ops::has_openblas()) {
    benchmark::AddCustomContext("vs_best_library", "not measured: built without both libraries");
  }
  const auto add_row = [&](const Form& form, const std::string& name, const Sizes& sizes,
                           Summary& rows) {
    benchmark::RegisterBenchmark(("kernel/sgemm_" + std::string(form.name) + "/" + name).c_str(),
                                 [&form, sizes, &limits, &rows](benchmark::State& state) {
                                   sgemm(state, form, sizes, limits, rows);
                                 });
  };
  for (const Form& form : kForms) {
    for (const int64_t size : kSizes)
      add_row(form, std::to_string(size), {size, size, size}, summary);
  }
  for (const Form* form : {&kForms[0], &kForms[1]}) {
    for (const Sizes& sizes : kFewRows) {
      add_row(
          *form,
          std::to_string(sizes.m) + "x" + std::to_string(sizes.n) + "x" + std::to_string(sizes.k),
          sizes, few_rows);
    }
  }
  for (const auto& [name, rows] : {std::pair{"kernel/sgemm/summary", &summary},
                                   std::pair{"kernel/sgemm/summary_of_few_rows", &few_rows}}) {
    benchmark::RegisterBenchmark(name, [rows = rows](benchmark::State& state) {
      summarise(state, *rows);
    })->Iterations(1);
  }
  return flow::bench::run_benchmarks(argc, argv);
}
