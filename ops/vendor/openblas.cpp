#include "ops/vendor/openblas.h"

#include <algorithm>
#include <iterator>

#include <dlfcn.h>
#include <sched.h>

namespace flow::ops {
namespace {

// The cblas interface by its documented values; cblas.h is not included, as several packages
// provide it.
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTransposed = 112;

template <class T>
using CblasGemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                           T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,
                           int ldc);

struct OpenBlas {
  void* library = nullptr;
  CblasGemm<float> sgemm = nullptr;
  CblasGemm<double> dgemm = nullptr;
  std::string description;
};

#if FLOW_WITH_OPENBLAS

// OpenBLAS starts a worker thread from its constructor for each CPU on which the loading thread may
// run. While this object exists, the calling thread is bound to its current CPU, so that no worker
// is started. Setting OPENBLAS_NUM_THREADS instead would write the environment while other threads
// may read it.
class OneCpuScope {
 public:
  OneCpuScope() {
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(saved_), &saved_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    bound_ = sched_setaffinity(0, sizeof(one), &one) == 0;
  }

  ~OneCpuScope() {
    if (bound_) sched_setaffinity(0, sizeof(saved_), &saved_);
  }

  OneCpuScope(const OneCpuScope&) = delete;
  OneCpuScope& operator=(const OneCpuScope&) = delete;

 private:
  cpu_set_t saved_;
  bool bound_ = false;
};

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

OpenBlas load() {
  OpenBlas blas;
  void* library = nullptr;
  {
    const OneCpuScope one_cpu;
    library = dlopen("libopenblas.so.0", RTLD_LOCAL | RTLD_NOW);
  }
  if (library == nullptr) {
    const char* reason = dlerror();
    blas.description = std::string("OpenBLAS not loaded: ") + (reason != nullptr ? reason : "");
    return blas;
  }
  const auto set_num_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto get_config = symbol<char* (*)()>(library, "openblas_get_config");
  const auto sgemm = symbol<CblasGemm<float>>(library, "cblas_sgemm");
  const auto dgemm = symbol<CblasGemm<double>>(library, "cblas_dgemm");
  if (set_num_threads == nullptr || get_config == nullptr || sgemm == nullptr || dgemm == nullptr) {
    blas.description = "OpenBLAS not used: libopenblas.so.0 lacks its cblas interface";
    return blas;  // stays mapped: its constructor may have registered handlers
  }
  set_num_threads(1);
  blas.library = library;
  blas.sgemm = sgemm;
  blas.dgemm = dgemm;
  blas.description = get_config();
  return blas;
}

#else

OpenBlas load() {
  OpenBlas blas;
  blas.description = "OpenBLAS not built in";
  return blas;
}

#endif

const OpenBlas& openblas() {
  static const OpenBlas blas = load();
  return blas;
}

template <class T>
void call(CblasGemm<T> function, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
          int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
          int64_t ldc) {
  function(kRowMajor, transpose_a ? kTransposed : kNoTranspose,
           transpose_b ? kTransposed : kNoTranspose, static_cast<int>(m), static_cast<int>(n),
           static_cast<int>(k), alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta, c,
           static_cast<int>(ldc));
}

}  // namespace

bool has_openblas() {
  return openblas().sgemm != nullptr;
}

bool openblas_suits(std::string_view description, CpuIsa isa) {
  if (isa == CpuIsa::kBaseline) return true;
  // The x86 kernels of OpenBLAS 0.3 that have neither AVX2 nor AVX-512.
  constexpr std::string_view kNarrow[] = {
      "Athlon",  "Atom",         "Banias",  "Barcelona",  "Bobcat",   "Bulldozer",   "Coppermine",
      "Core2",   "Dunnington",   "Generic", "Katmai",     "Nano",     "Nehalem",     "Northwood",
      "Opteron", "Opteron_SSE3", "Penryn",  "Piledriver", "Prescott", "SandyBridge", "generic"};
  while (!description.empty()) {
    const size_t space = std::min(description.find(' '), description.size());
    const std::string_view word = description.substr(0, space);
    if (std::find(std::begin(kNarrow), std::end(kNarrow), word) != std::end(kNarrow)) return false;
    description.remove_prefix(std::min(space + 1, description.size()));
  }
  return true;
}

bool openblas_suits_cpu() {
  static const bool suits =
      has_openblas() && openblas_suits(openblas_description(), detected_isa());
  return suits;
}

bool is_openblas_built_in() {
#if FLOW_WITH_OPENBLAS
  return true;
#else
  return false;
#endif
}

void* openblas_function(const char* name) {
  return has_openblas() ? dlsym(openblas().library, name) : nullptr;
}

const std::string& openblas_description() {
  return openblas().description;
}

void openblas_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc) {
  call(openblas().sgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void openblas_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                   double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                   double beta, double* c, int64_t ldc) {
  call(openblas().dgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace flow::ops
