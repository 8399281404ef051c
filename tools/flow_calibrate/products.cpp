#include "tools/flow_calibrate/products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <time.h>

#include "core/allocator.h"
#include "core/error.h"
#include "core/storage.h"
#include "ops/linear/gemm_backend.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/openblas.h"

namespace flow {

namespace {

using ops::GemmBackend;
using ops::GemmTable;
using ops::GemmTask;
using ops::kGemmClassSizes;
using ops::kGemmSizeClasses;
using ops::Transpose;

// Candidates, in the order of preference among those that are equally fast: own kernels do not
// change with the installed libraries.
struct Candidate {
  char letter;
  GemmBackend backend;
};

constexpr std::array<Candidate, 3> kCandidates = {Candidate{'w', GemmBackend::kOwn},
                                                  Candidate{'d', GemmBackend::kOneDnn},
                                                  Candidate{'o', GemmBackend::kOpenBlas}};
constexpr size_t kOwn = 0;

// A candidate replaces an earlier one only if it is faster by this factor.
constexpr double kClearlyFaster = 1.02;
// The same for a depth: it changes the order of additions, and is measured with more products.
constexpr double kClearlyDeeper = 1.01;

// The CPU time of this thread, which does not include the time that other processes take.
double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Infinity for a library that is absent.
using Times = std::array<double, kCandidates.size()>;

// Memory as tensors have it, in huge pages.
template <class T>
class Buffer {
 public:
  Buffer(Allocator& allocator, size_t count, T value)
      : count_(static_cast<int64_t>(count)),
        storage_(Storage::allocate(allocator, count * sizeof(T))) {
    std::fill_n(data(), count, value);
  }

  T* data() const { return reinterpret_cast<T*>(storage_->data()); }

  int64_t size() const { return count_; }

 private:
  int64_t count_;
  Ref<Storage> storage_;
};

// Large operands are read from memory, as a step reads the weights of one layer after another: each
// product takes the next matrix of the buffer. Products of few rows or columns do little for what
// they read, so they also read it from the cache, as short sequences of steps do: two products take
// the same matrix.
template <class T>
class Operand {
 public:
  Operand(const Buffer<T>& buffer, int64_t count, int64_t uses)
      : first_(buffer.data()),
        count_(count),
        uses_(uses),
        matrices_(count * static_cast<int64_t>(sizeof(T)) < kLarge ? 1 : buffer.size() / count) {}

  const T* next() { return first_ + calls_++ / uses_ % matrices_ * count_; }

 private:
  static constexpr int64_t kLarge = 1 << 20;

  const T* first_;
  int64_t count_;
  int64_t uses_;  // of a matrix one after the other
  int64_t matrices_;
  int64_t calls_ = 0;
};

// Seconds of one product by each of the first candidates: the lower quartile of interleaved rounds.
// The minimum would be wrong, because a virtual machine's clock is sometimes set back by time that
// the host took earlier. Other processes only make rounds slower.
template <class T>
Times measure(GemmTask<T> task, const Buffer<T>& a_buffer, const Buffer<T>& b_buffer,
              size_t num_candidates) {
  constexpr int64_t kFew = 64;
  const int uses = std::min(task.m, task.n) <= kFew ? 2 : 1;
  Operand<T> a(a_buffer, task.m * task.k, uses);
  Operand<T> b(b_buffer, task.k * task.n, uses);
  constexpr double kRoundSeconds = 30e-6;
  constexpr int kMinRounds = 5;
  constexpr double kMinSeconds = 3e-3;
  std::array<std::vector<double>, kCandidates.size()> times;
  std::array<int, kCandidates.size()> repeats;
  repeats.fill(0);
  const double start = seconds();
  for (int round = 0; round < kMinRounds || seconds() - start < kMinSeconds; ++round) {
    for (size_t i = 0; i < num_candidates; ++i) {
      if (!ops::has_gemm_backend<T>(kCandidates[i].backend)) continue;
      if (kCandidates[i].backend == GemmBackend::kOpenBlas && !ops::openblas_suits_cpu()) continue;
      const int calls = (repeats[i] + 1) * uses;
      const double begin = seconds();
      for (int j = 0; j < calls; ++j) {
        task.a = a.next();
        task.b = b.next();
        ops::gemm_with(kCandidates[i].backend, task);
      }
      const double time = (seconds() - begin) / calls;
      times[i].push_back(time);
      if (round == 0) repeats[i] = static_cast<int>(kRoundSeconds / std::max(time, 1e-9));
    }
  }
  Times quartiles;
  quartiles.fill(HUGE_VAL);
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    if (times[i].empty()) continue;
    const auto quarter = times[i].begin() + static_cast<std::ptrdiff_t>(times[i].size() / 4);
    std::nth_element(times[i].begin(), quarter, times[i].end());
    quartiles[i] = *quarter;
  }
  return quartiles;
}

// A class of products: positions in GemmTable.
struct Class {
  int type, form, m, n, k;
};

template <class T>
class Matrices {
 public:
  explicit Matrices(Allocator& allocator)
      : a_(allocator, kMatrices * kCount, T(0.5)),
        b_(allocator, kMatrices * kCount, T(0.25)),
        c_(allocator, kCount, T(0)) {}

  // Seconds of products by own kernels whose first operand has contiguous rows: the geometric mean
  // over shapes of training steps.
  double measure_rows() {
    constexpr int kNn = 0, kNt = 1;

    struct Shape {
      int form;
      int64_t m, n, k;
    };

    constexpr std::array kShapes = {Shape{kNt, 512, 512, 784}, Shape{kNn, 512, 512, 512},
                                    Shape{kNt, 2048, 384, 384}, Shape{kNn, 2048, 384, 1536},
                                    Shape{kNt, 2048, 1536, 384}};
    double sum_of_logs = 0;
    for (const auto& [form, m, n, k] : kShapes)
      sum_of_logs += std::log(measure_product(form, m, n, k, kOwn + 1)[kOwn]);
    return std::exp(sum_of_logs / kShapes.size());
  }

  // The class is measured at its size and at four fifths of it, because strides that are a power
  // of two behave differently in caches. Returns the geometric means.
  Times measure_class(const Class& at) {
    const auto smaller = [](int64_t size) { return size < 16 ? size : size * 4 / 5 | 1; };
    const int64_t m = kGemmClassSizes[at.m], n = kGemmClassSizes[at.n], k = kGemmClassSizes[at.k];
    const Times whole = measure_product(at.form, m, n, k);
    const Times part = measure_product(at.form, smaller(m), smaller(n), smaller(k));
    Times both;
    for (size_t i = 0; i < both.size(); ++i)
      both[i] = std::sqrt(whole[i] * part[i]);
    return both;
  }

 private:
  static constexpr size_t kCount = size_t{2048} * 2048;
  static constexpr size_t kMatrices = 4;  // of the largest size

  Times measure_product(int form, int64_t m, int64_t n, int64_t k,
                        size_t num_candidates = kCandidates.size()) {
    const bool ta = (form & 2) != 0, tb = (form & 1) != 0;
    const GemmTask<T> task = {.transpose_a = ta ? Transpose::kYes : Transpose::kNo,
                              .transpose_b = tb ? Transpose::kYes : Transpose::kNo,
                              .m = m,
                              .n = n,
                              .k = k,
                              .lda = ta ? m : k,
                              .ldb = tb ? k : n,
                              .c = c_.data(),
                              .ldc = n};
    return measure(task, a_, b_, num_candidates);
  }

  Buffer<T> a_, b_, c_;
};

// The first candidate, in their order, that no later one clearly beats.
size_t fastest(const Times& times) {
  size_t best = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] * kClearlyFaster <= times[best]) best = i;
  }
  return best;
}

size_t position_of(char letter) {
  size_t i = 0;
  while (kCandidates[i].letter != letter)
    ++i;
  return i;
}

class Calibration {
 public:
  Calibration(ops::CpuTable base, bool keeps_base) : keeps_base_(keeps_base), base_(base.products) {
    report_.table = std::move(base);
    report_.least_own_vs_best = HUGE_VAL;
  }

  ~Calibration() { Allocator::recycle(&allocator_); }

  Calibration(const Calibration&) = delete;
  Calibration& operator=(const Calibration&) = delete;

  // Measures the depth, and with it the classes whose positions are multiples of `step`.
  ProductReport run(int step, const OnProgress& on_progress) {
    report_.table.depth = fastest_depth();
    ops::set_cpu_table(report_.table);
    const std::vector<Class> classes = classes_of(step);
    double work = 0;
    for (const Class& at : classes)
      work += work_of(at);
    double done = 0;
    for (const Class& at : classes) {
      if (at.type == 0) {
        settle(at, floats_.measure_class(at), [&] { return floats_.measure_class(at); });
      } else {
        settle(at, doubles_.measure_class(at), [&] { return doubles_.measure_class(at); });
      }
      done += work_of(at);
      on_progress(done / work);
    }
    report_.num_measured = static_cast<int>(classes.size());
    report_.own_vs_best = std::exp(sum_of_logs_ / static_cast<double>(classes.size()));
    if (step > 1) fill_between(step);
    return report_;
  }

 private:
  // The base's depth, unless another one is clearly faster.
  int64_t fastest_depth() {
    constexpr int kRounds = 5;
    std::vector<int64_t> depths = {report_.table.depth};
    for (const int64_t other : {256, 512}) {
      if (other != depths[0]) depths.push_back(other);
    }
    std::vector<double> least(depths.size(), HUGE_VAL);
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < depths.size(); ++i) {
        ops::CpuTable table = report_.table;
        table.depth = depths[i];
        ops::set_cpu_table(std::move(table));
        least[i] = std::min(least[i], floats_.measure_rows());
      }
    }
    size_t best = 0;
    for (size_t i = 1; i < depths.size(); ++i) {
      if (least[i] * kClearlyDeeper <= least[best]) best = i;
    }
    return depths[best];
  }

  static std::vector<Class> classes_of(int step) {
    std::vector<Class> all;
    for (int type = 0; type < GemmTable::kNumTypes; ++type)
      for (int form = 0; form < GemmTable::kNumForms; ++form)
        for (int m = 0; m < kGemmSizeClasses; m += step)
          for (int n = 0; n < kGemmSizeClasses; n += step)
            for (int k = 0; k < kGemmSizeClasses; k += step)
              all.push_back({type, form, m, n, k});
    return all;
  }

  // In proportion to the time that measuring takes: some milliseconds, or five rounds.
  static double work_of(const Class& at) {
    const auto volume = static_cast<double>(kGemmClassSizes[at.m]) *
                        static_cast<double>(kGemmClassSizes[at.n]) *
                        static_cast<double>(kGemmClassSizes[at.k]);
    return std::max(6e-3, volume * 4.5e-10 * (at.type + 1));
  }

  template <class Measure>
  void settle(const Class& at, const Times& times, Measure measure_again) {
    const double best_time = *std::min_element(times.begin(), times.end());
    const double own = best_time / times[kOwn];
    sum_of_logs_ += std::log(own);
    report_.least_own_vs_best = std::min(report_.least_own_vs_best, own);
    const size_t best = fastest(times);
    char& letter = report_.table.products.letter(at.type, at.form, at.m, at.n, at.k);
    if (letter == kCandidates[best].letter) return;
    if (keeps_base_) {
      const size_t base = position_of(letter);
      const auto wins = [&](const Times& all) { return all[best] * kClearlyFaster <= all[base]; };
      if (!wins(times) || !wins(measure_again())) return;
    }
    letter = kCandidates[best].letter;
    ++report_.num_changed;
  }

  // The measured positions around a position.
  static std::vector<int> around(int position, int step) {
    const int below = position / step * step;
    if (below == position || below + step >= kGemmSizeClasses) return {below};
    return {below, below + step};
  }

  void fill_between(int step) {
    GemmTable& table = report_.table.products;
    for (int type = 0; type < GemmTable::kNumTypes; ++type)
      for (int form = 0; form < GemmTable::kNumForms; ++form)
        for (int m = 0; m < kGemmSizeClasses; ++m)
          for (int n = 0; n < kGemmSizeClasses; ++n)
            for (int k = 0; k < kGemmSizeClasses; ++k) {
              if (m % step == 0 && n % step == 0 && k % step == 0) continue;
              const char letter = agreed({type, form, m, n, k}, step);
              char& own = table.letter(type, form, m, n, k);
              if (letter == 0 || letter == own) continue;
              own = letter;
              ++report_.num_changed;
            }
  }

  // The letter to which all measured classes around this one were changed; 0 if there is none.
  char agreed(const Class& at, int step) const {
    char letter = 0;
    for (const int m : around(at.m, step))
      for (const int n : around(at.n, step))
        for (const int k : around(at.k, step)) {
          const char now = report_.table.products.letter(at.type, at.form, m, n, k);
          if (now == base_.letter(at.type, at.form, m, n, k)) return 0;
          if (letter != 0 && letter != now) return 0;
          letter = now;
        }
    return letter;
  }

  bool keeps_base_;
  GemmTable base_;
  ProductReport report_;
  double sum_of_logs_ = 0;
  Allocator& allocator_ = *Allocator::acquire();
  Matrices<float> floats_{allocator_};
  Matrices<double> doubles_{allocator_};
};

}  // namespace

ProductReport calibrate_products(const ops::CpuTable& base, const OnProgress& on_progress) {
  ops::CpuTable table = base;
  table.cpu = ops::cpu_and_isa();
  table.libraries = ops::product_libraries();
  return Calibration(std::move(table), true).run(2, on_progress);
}

ProductReport measure_all_products(const OnProgress& on_progress) {
  if (!ops::has_onednn() || !ops::has_openblas()) {
    throw Unsupported(str("[flow-calibrate] a table for the source needs both libraries; ",
                          ops::onednn_description(), ", ", ops::openblas_description(),
                          "; install them"));
  }
  const ops::CpuTable table{.cpu = ops::cpu_and_isa(),
                            .libraries = ops::product_libraries(),
                            .origin = "",
                            .products = GemmTable()};
  return Calibration(table, false).run(1, on_progress);
}

std::string to_source(const ops::CpuTable& table, const std::string& cpu, const std::string& name) {
  std::string text = str("// Written by flow-calibrate source on ", cpu, " (", table.cpu,
                         ") with\n// ", table.libraries, ";\n// depth ", table.depth,
                         ".\n\n#include \"ops/linear/gemm_table.h\"\n\n",
                         "namespace flow::ops {\n\n// clang-format off\n",
                         "const GemmTable::Text kGemmTable", name, " = {{\n");
  for (int type = 0; type < GemmTable::kNumTypes; ++type) {
    text += "    {\n";
    for (int form = 0; form < GemmTable::kNumForms; ++form) {
      text += "        {\n";
      for (int m = 0; m < kGemmSizeClasses; ++m) {
        text += "            \"";
        for (int n = 0; n < kGemmSizeClasses; ++n) {
          if (n == kGemmSizeClasses / 2) text += "\"\n            \"";
          for (int k = 0; k < kGemmSizeClasses; ++k)
            text += table.products.letter(type, form, m, n, k);
          if (n + 1 < kGemmSizeClasses) text += ' ';
        }
        text += "\",\n";
      }
      text += "        },\n";
    }
    text += "    },\n";
  }
  return text + "}};\n// clang-format on\n\n}  // namespace flow::ops\n";
}

}  // namespace flow
