// Measures which library is fastest for each shape of a matrix product, and writes the table from
// which flow chooses the library:
//
//   calibrate avx512 ops/linear/gemm_table_avx512.cpp
//
// This takes some minutes on an idle machine. The instruction set must be the one in use. To
// measure a narrower set than that of the machine, run
//
//   FLOW_CPU_ISA=avx2 OPENBLAS_CORETYPE=Haswell DNNL_MAX_CPU_ISA=AVX2 calibrate avx2 ...
//
// With `costs` it measures the cost table of this machine, which FLOW_COST_TABLE may name, in a
// second or two:
//
//   flowrun -n 2 calibrate costs costs.json

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <time.h>

#include "boxing/cost.h"
#include "core/context.h"
#include "core/error.h"
#include "ops/kernel/cpu_features.h"
#include "ops/linear/gemm_backend.h"
#include "ops/linear/gemm_table.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/openblas.h"
#include "tools/calibrate_costs.h"

namespace {

using flow::str;
using flow::ops::GemmBackend;
using flow::ops::GemmTask;
using flow::ops::kGemmClassSizes;
using flow::ops::kGemmSizeClasses;
using flow::ops::Transpose;

// Candidates, in the order of preference among those that are equally fast.
struct Candidate {
  char letter;
  GemmBackend backend;
};

constexpr std::array<Candidate, 3> kCandidates = {Candidate{'d', GemmBackend::kOneDnn},
                                                  Candidate{'o', GemmBackend::kOpenBlas},
                                                  Candidate{'w', GemmBackend::kOwn}};

// A candidate replaces an earlier one only if it is faster by this factor.
constexpr double kClearlyFaster = 1.02;

// The CPU time of this thread, which does not include the time that other processes take.
double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Times = std::array<double, kCandidates.size()>;

// Seconds of one product by each candidate: the lower quartile of interleaved rounds. The minimum
// would be wrong, because a virtual machine's clock is sometimes set back by time that the host
// took earlier. Other processes only make rounds slower.
template <class T>
Times measure(const GemmTask<T>& task) {
  constexpr double kRoundSeconds = 30e-6;
  constexpr int kMinRounds = 5;
  constexpr double kMinSeconds = 3e-3;
  std::array<std::vector<double>, kCandidates.size()> times;
  std::array<int, kCandidates.size()> repeats;
  repeats.fill(0);
  const double start = seconds();
  for (int round = 0; round < kMinRounds || seconds() - start < kMinSeconds; ++round) {
    for (size_t i = 0; i < kCandidates.size(); ++i) {
      if (!flow::ops::has_gemm_backend<T>(kCandidates[i].backend)) continue;
      const double begin = seconds();
      for (int j = 0; j <= repeats[i]; ++j)
        flow::ops::gemm_with(kCandidates[i].backend, task);
      const double time = (seconds() - begin) / (repeats[i] + 1);
      times[i].push_back(time);
      if (round == 0) repeats[i] = static_cast<int>(kRoundSeconds / std::max(time, 1e-9));
    }
  }
  Times quartiles{};
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    if (times[i].empty()) continue;
    const auto quarter = times[i].begin() + static_cast<std::ptrdiff_t>(times[i].size() / 4);
    std::nth_element(times[i].begin(), quarter, times[i].end());
    quartiles[i] = *quarter;
  }
  return quartiles;
}

template <class T>
class Matrices {
 public:
  Matrices() : a_(kCount, T(0.5)), b_(kCount, T(0.25)), c_(kCount, T(0)) {}

  GemmTask<T> task(bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
    return {.transpose_a = ta ? Transpose::kYes : Transpose::kNo,
            .transpose_b = tb ? Transpose::kYes : Transpose::kNo,
            .m = m,
            .n = n,
            .k = k,
            .a = a_.data(),
            .lda = ta ? m : k,
            .b = b_.data(),
            .ldb = tb ? k : n,
            .c = c_.data(),
            .ldc = n};
  }

 private:
  static constexpr size_t kCount = size_t{2048} * 2048;
  std::vector<T> a_, b_, c_;
};

// The class is measured at its size and at four fifths of it, because strides that are a power of
// two behave differently in caches.
template <class T>
char fastest(Matrices<T>& matrices, bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
  const auto smaller = [](int64_t size) { return size < 16 ? size : size * 4 / 5 | 1; };
  const Times at_size = measure(matrices.task(ta, tb, m, n, k));
  const Times below = measure(matrices.task(ta, tb, smaller(m), smaller(n), smaller(k)));
  size_t best = kCandidates.size();
  double best_time = 0;
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    const double time = at_size[i] * below[i];
    if (!flow::ops::has_gemm_backend<T>(kCandidates[i].backend)) continue;
    if (best < kCandidates.size() && time * kClearlyFaster * kClearlyFaster > best_time) continue;
    best = i;
    best_time = time;
  }
  return kCandidates[best].letter;
}

template <class T>
std::string measure_type() {
  Matrices<T> matrices;
  std::string text;
  for (int transposes = 0; transposes < 4; ++transposes) {
    text += "        {\n";
    for (const int64_t m : kGemmClassSizes) {
      std::string row;
      for (const int64_t n : kGemmClassSizes) {
        if (!row.empty()) row += ' ';
        for (const int64_t k : kGemmClassSizes) {
          row += fastest(matrices, (transposes & 2) != 0, (transposes & 1) != 0, m, n, k);
        }
      }
      const size_t half = row.size() / 2 + 1;
      text += str("            \"", row.substr(0, half), "\"\n            \"", row.substr(half),
                  "\",\n");
      std::fprintf(stderr, "%s %s m %ld: %s\n", sizeof(T) == 4 ? "float" : "double",
                   std::array{"NN", "NT", "TN", "TT"}[static_cast<size_t>(transposes)],
                   static_cast<long>(m), row.c_str());
    }
    text += "        },\n";
  }
  return text;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "an unnamed CPU";
}

void calibrate(const std::string& isa, const std::string& path) {
  if (isa != "avx2" && isa != "avx512") {
    throw flow::InvalidArgument(str("[calibrate] the table must be for avx2 or avx512; received ",
                                    isa, "; name one of them"));
  }
  if (to_string(flow::ops::active_isa()) != isa) {
    throw flow::InvalidArgument(str("[calibrate] the kernels in use are those for ",
                                    to_string(flow::ops::active_isa()), ", not for ", isa,
                                    "; set FLOW_CPU_ISA or use another machine"));
  }
  if (!flow::ops::has_onednn() || !flow::ops::has_openblas()) {
    throw flow::Unsupported(str("[calibrate] both libraries are needed; ",
                                flow::ops::onednn_description(), ", ",
                                flow::ops::openblas_description(), "; install them"));
  }
  const std::string floats = measure_type<float>();
  const std::string doubles = measure_type<double>();
  std::ofstream file(path);
  file << "// Written by tools/calibrate on " << cpu_name() << " with\n// "
       << flow::ops::onednn_description() << " and " << flow::ops::openblas_description() << ".\n\n"
       << "#include \"ops/linear/gemm_table.h\"\n\nnamespace flow::ops {\n\n// clang-format "
          "off\nconst "
          "GemmTable kGemmTable"
       << (isa == "avx2" ? "Avx2" : "Avx512") << " = {{\n    {\n"
       << floats << "    },\n    {\n"
       << doubles << "    },\n}};\n// clang-format on\n\n}  // namespace flow::ops\n";
  file.close();
  if (!file)
    throw flow::IoError(str("[calibrate] cannot write the table to ", path,
                            "; check the folder and the space left"));
}

void calibrate_costs(const std::string& path) {
  const flow::boxing::CostTable costs = flow::measure_costs();
  if (flow::env::rank() != 0) return;
  std::ofstream file(path);
  file << to_string(costs);
  file.close();
  if (!file)
    throw flow::IoError(str("[calibrate] cannot write the table to ", path,
                            "; check the folder and the space left"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: calibrate avx2|avx512|costs FILE\n");
    return 64;
  }
  const std::string what = argv[1];
  try {
    if (what == "costs") {
      calibrate_costs(argv[2]);
    } else {
      calibrate(what, argv[2]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
