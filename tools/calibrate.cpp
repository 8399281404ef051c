// Measures which library multiplies which shape fastest, with operands in cache and from memory,
// and writes the table that gemm chooses by:
//
//   calibrate avx512 ops/gemm_table_avx512.cpp
//
// Some minutes on an idle machine. The instruction set must be the one in use; a narrower one is
// measured on a wider machine by
//
//   FLOW_CPU_ISA=avx2 OPENBLAS_CORETYPE=Haswell DNNL_MAX_CPU_ISA=AVX2 calibrate avx2 ...

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <time.h>

#include "core/error.h"
#include "ops/cpu_features.h"
#include "ops/gemm_backend.h"
#include "ops/gemm_table.h"
#include "ops/onednn.h"
#include "ops/openblas.h"

namespace {

using flow::str;
using flow::ops::GemmBackend;
using flow::ops::GemmTask;
using flow::ops::kGemmClassSizes;
using flow::ops::kGemmSizeClasses;
using flow::ops::Transpose;

// In the order of preference among equals.
struct Candidate {
  char letter;
  GemmBackend backend;
};

constexpr std::array<Candidate, 3> kCandidates = {Candidate{'w', GemmBackend::kOwn},
                                                  Candidate{'d', GemmBackend::kOneDnn},
                                                  Candidate{'o', GemmBackend::kOpenBlas}};

// A candidate is taken over an earlier one only where it is faster by this factor.
constexpr double kClearlyFaster = 1.02;

// Of this thread on a CPU: what others on the machine take away by the clock is not counted.
double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Times = std::array<double, kCandidates.size()>;

// Operands of products of one shape, all at the same place or, one product after the other, at
// places that were not touched for long.
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
            .a = aligned(a_),
            .lda = ta ? m : k,
            .b = aligned(b_),
            .ldb = tb ? k : n,
            .c = aligned(c_),
            .ldc = n};
  }

  // How many of these tasks go through other memory.
  static int64_t places(const GemmTask<T>& task) {
    return kElements /
           std::max({step(task.m * task.k), step(task.k * task.n), step(task.m * task.n)});
  }

  // The task at a place, counted round.
  GemmTask<T> at(GemmTask<T> task, int64_t place) const {
    place %= places(task);
    task.a += place * step(task.m * task.k);
    task.b += place * step(task.k * task.n);
    task.c += place * step(task.m * task.n);
    return task;
  }

 private:
  static constexpr int64_t kElements = int64_t{2048} * 2048;
  static constexpr int64_t kLine = 64 / sizeof(T);
  static constexpr auto kCount = static_cast<size_t>(kElements + kLine);

  static int64_t step(int64_t elements) { return (elements + kLine - 1) / kLine * kLine; }

  // As flow's allocator does.
  static T* aligned(std::vector<T>& values) {
    void* first = values.data();
    size_t bytes = values.size() * sizeof(T);
    return static_cast<T*>(std::align(64, kElements * sizeof(T), first, bytes));
  }

  std::vector<T> a_, b_, c_;
};

// Seconds of one product by each candidate, infinite if it is absent: the lower quartile of
// interleaved rounds. Others on the machine make a round slower; on a virtual machine the clock is
// also set back now and then, by time that the host took away earlier.
template <class T>
Times measure(const Matrices<T>& matrices, const GemmTask<T>& task, bool moves) {
  constexpr double kRoundSeconds = 30e-6;
  constexpr int kMinRounds = 4;
  constexpr double kMinSeconds = 2e-3;
  std::array<std::vector<double>, kCandidates.size()> times;
  std::array<int, kCandidates.size()> repeats;
  repeats.fill(0);
  int64_t place = 0;
  const double start = seconds();
  for (int round = 0; round < kMinRounds || seconds() - start < kMinSeconds; ++round) {
    for (size_t i = 0; i < kCandidates.size(); ++i) {
      if (!flow::ops::has_gemm_backend<T>(kCandidates[i].backend)) continue;
      const double begin = seconds();
      for (int j = 0; j <= repeats[i]; ++j) {
        flow::ops::gemm_with(kCandidates[i].backend, matrices.at(task, place));
        if (moves) ++place;
      }
      const double time = (seconds() - begin) / (repeats[i] + 1);
      times[i].push_back(time);
      if (round == 0) repeats[i] = static_cast<int>(kRoundSeconds / std::max(time, 1e-9));
    }
  }
  Times quartiles;
  quartiles.fill(std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    if (times[i].empty()) continue;
    const auto quarter = times[i].begin() + static_cast<std::ptrdiff_t>(times[i].size() / 4);
    std::nth_element(times[i].begin(), quarter, times[i].end());
    quartiles[i] = *quarter;
  }
  return quartiles;
}

// The class is measured at its size and at four fifths of it, as strides of a power of two are
// special to caches; and with operands in cache and from memory, as a benchmark and as a training
// step would find them.
template <class T>
char fastest(Matrices<T>& matrices, bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
  const auto smaller = [](int64_t size) { return size < 16 ? size : size * 4 / 5 | 1; };
  Times logs{};
  int count = 0;
  for (const GemmTask<T>& task : {matrices.task(ta, tb, m, n, k),
                                  matrices.task(ta, tb, smaller(m), smaller(n), smaller(k))}) {
    for (const bool moves : {false, true}) {
      if (moves && Matrices<T>::places(task) == 1) continue;
      const Times times = measure(matrices, task, moves);
      for (size_t i = 0; i < kCandidates.size(); ++i)
        logs[i] += std::log(times[i]);
      ++count;
    }
  }
  size_t best = 0;
  for (size_t i = 1; i < kCandidates.size(); ++i) {
    if (logs[i] + count * std::log(kClearlyFaster) < logs[best]) best = i;
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
    throw flow::InvalidArgument(str("[calibrate] there are tables for avx2 and avx512; received ",
                                    isa, "; name one of them"));
  }
  if (to_string(flow::ops::active_isa()) != isa) {
    throw flow::InvalidArgument(str("[calibrate] kernels for ", to_string(flow::ops::active_isa()),
                                    " are in use, not for ", isa,
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
       << "#include \"ops/gemm_table.h\"\n\nnamespace flow::ops {\n\n// clang-format off\nconst "
          "GemmTable kGemmTable"
       << (isa == "avx2" ? "Avx2" : "Avx512") << " = {{\n    {\n"
       << floats << "    },\n    {\n"
       << doubles << "    },\n}};\n// clang-format on\n\n}  // namespace flow::ops\n";
  file.close();
  if (!file)
    throw flow::IoError(str("[calibrate] the table cannot be written; received ", path,
                            "; check the folder and the space left"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: calibrate avx2|avx512 FILE\n");
    return 64;
  }
  try {
    calibrate(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
