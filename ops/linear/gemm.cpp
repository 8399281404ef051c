#include "ops/linear/gemm.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/error.h"
#include "ops/kernel/cpu_features.h"
#include "ops/linear/cpu_table.h"
#include "ops/linear/gemm_backend.h"
#include "ops/linear/gemm_blocked.h"
#include "ops/linear/gemm_kernels.h"
#include "ops/linear/gemm_split.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {
namespace {

// Products this small take less time than a look at the table.
constexpr int64_t kTinyVolume = 512;

template <class T>
GemmCall<T> to_call(const GemmTask<T>& task) {
  const bool ta = task.transpose_a == Transpose::kYes;
  const bool tb = task.transpose_b == Transpose::kYes;
  return {.m = task.m,
          .n = task.n,
          .k = task.k,
          .alpha = task.alpha,
          .a = task.a,
          .a_row = ta ? 1 : task.lda,
          .a_col = ta ? task.lda : 1,
          .b = task.b,
          .b_row = tb ? 1 : task.ldb,
          .b_col = tb ? task.ldb : 1,
          .beta = task.beta,
          .c = task.c,
          .ldc = task.ldc,
          .bias = task.bias};
}

template <class T>
void reference_gemm(const GemmTask<T>& task) {
  const GemmCall<T> call = to_call(task);
  for (int64_t i = 0; i < call.m; ++i) {
    for (int64_t j = 0; j < call.n; ++j) {
      double sum = 0.0;
      for (int64_t p = 0; p < call.k; ++p) {
        sum += static_cast<double>(call.a[i * call.a_row + p * call.a_col]) *
               static_cast<double>(call.b[p * call.b_row + j * call.b_col]);
      }
      T& c = call.c[i * call.ldc + j];
      const T product = call.alpha * static_cast<T>(sum);
      c = call.beta == T{0} ? product : product + call.beta * c;
    }
  }
}

template <class T>
bool fits_openblas(const GemmTask<T>& task) {
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  return std::max({task.m, task.n, task.k, task.lda, task.ldb, task.ldc}) <= kMax;
}

// Returns true if the back end computed the product.
template <class T>
bool try_backend(GemmBackend backend, const GemmTask<T>& task) {
  const bool ta = task.transpose_a == Transpose::kYes;
  const bool tb = task.transpose_b == Transpose::kYes;
  switch (backend) {
    case GemmBackend::kReference:
      reference_gemm(task);
      return true;
    case GemmBackend::kOwn:
      own_gemm(to_call(task));
      return true;
    case GemmBackend::kOneDnn:
      if constexpr (std::is_same_v<T, float>) {
        return has_onednn() && onednn_gemm(ta, tb, task.m, task.n, task.k, task.alpha, task.a,
                                           task.lda, task.b, task.ldb, task.beta, task.c, task.ldc);
      }
      return false;
    case GemmBackend::kOpenBlas:
      if (!has_openblas() || !fits_openblas(task)) return false;
      openblas_gemm(ta, tb, task.m, task.n, task.k, task.alpha, task.a, task.lda, task.b, task.ldb,
                    task.beta, task.c, task.ldc);
      return true;
  }
  return false;
}

// C = beta * C: the result of a product whose sum has no terms.
template <class T>
void scale(const GemmTask<T>& task) {
  for (int64_t i = 0; i < task.m; ++i) {
    T* row = task.c + i * task.ldc;
    if (task.beta == T{0}) {
      std::fill(row, row + task.n, T{0});
    } else {
      for (int64_t j = 0; j < task.n; ++j)
        row[j] *= task.beta;
    }
  }
}

template <class T>
void check(const GemmTask<T>& task) {
  FLOW_ASSERT(task.m >= 0 && task.n >= 0 && task.k >= 0, "gemm of a negative size");
  FLOW_ASSERT(task.lda >= (task.transpose_a == Transpose::kYes ? task.m : task.k), "gemm lda");
  FLOW_ASSERT(task.ldb >= (task.transpose_b == Transpose::kYes ? task.k : task.n), "gemm ldb");
  FLOW_ASSERT(task.ldc >= task.n, "gemm ldc");
  FLOW_ASSERT(task.bias == nullptr || (task.alpha == T{1} && task.beta == T{0}), "gemm bias");
}

template <class T>
GemmBackend fastest_backend(const GemmTask<T>& task) {
  if (task.m * task.n * task.k <= kTinyVolume) return GemmBackend::kOwn;
  return cpu_table().products.template fastest<T>(task.transpose_a, task.transpose_b, task.m,
                                                  task.n, task.k);
}

template <class T>
void run(const GemmTask<T>& task, GemmBackend fastest) {
  check(task);
  if (task.m == 0 || task.n == 0) return;
  if (task.bias != nullptr && (fastest != GemmBackend::kOwn || task.k == 0))
    return run(with_bias_in_c(task), fastest);
  if (task.k == 0) return scale(task);
  if (fastest == GemmBackend::kOwn) return own_gemm(to_call(task));
  const GemmBackend other =
      fastest == GemmBackend::kOneDnn ? GemmBackend::kOpenBlas : GemmBackend::kOneDnn;
  const auto computes = [&](GemmBackend backend) {
    return (backend != GemmBackend::kOpenBlas || openblas_suits_cpu()) &&
           try_backend(backend, task);
  };
  if (!computes(fastest) && !computes(other)) own_gemm(to_call(task));
}

// Calls fn for the products of a batch, one after another.
template <class T, class Fn>
void for_each_product(const GemmTask<T>& task, const Fn& fn) {
  GemmTask<T> one = task;
  for (int64_t i = 0; i < task.batch; ++i) {
    fn(one);
    one.a += task.a_stride;
    one.b += task.b_stride;
    one.c += task.c_stride;
  }
}

template <class T>
void run_batch(const GemmTask<T>& task, GemmBackend fastest) {
  for_each_product(task, [&](const GemmTask<T>& one) { run(one, fastest); });
}

// The back end is that of a whole product: a cell's operands are as far apart as the product's.
template <class T>
void run_cells(const GemmTask<T>& task, const GemmSplit& split, int64_t begin, int64_t end) {
  const GemmBackend fastest = fastest_backend(task);
  const int64_t a_row = task.transpose_a == Transpose::kYes ? 1 : task.lda;
  const int64_t b_col = task.transpose_b == Transpose::kYes ? task.ldb : 1;
  for (int64_t cell = begin; cell < end; ++cell) {
    const int64_t column = cell % split.n_cells * split.cell_n;
    const int64_t row = cell / split.n_cells % split.m_cells * split.cell_m;
    const int64_t first = cell / (split.n_cells * split.m_cells) * split.cell_batch;
    GemmTask<T> part = task;
    part.batch = std::min(split.cell_batch, task.batch - first);
    part.m = std::min(split.cell_m, task.m - row);
    part.n = std::min(split.cell_n, task.n - column);
    part.a += first * task.a_stride + row * a_row;
    part.b += first * task.b_stride + column * b_col;
    part.c += first * task.c_stride + row * task.ldc + column;
    if (task.bias != nullptr) part.bias += column;
    run_batch(part, fastest);
  }
}

}  // namespace

template <class T>
bool has_gemm_backend(GemmBackend backend) {
  switch (backend) {
    case GemmBackend::kReference:
    case GemmBackend::kOwn:
      return true;
    case GemmBackend::kOneDnn:
      return std::is_same_v<T, float> && has_onednn();
    case GemmBackend::kOpenBlas:
      return has_openblas();
  }
  return false;
}

template <class T>
void gemm_with(GemmBackend backend, const GemmTask<T>& task) {
  FLOW_ASSERT(try_backend(backend, task), "gemm back end is absent");
}

template bool has_gemm_backend<float>(GemmBackend);
template bool has_gemm_backend<double>(GemmBackend);
template void gemm_with(GemmBackend, const GemmTask<float>&);
template void gemm_with(GemmBackend, const GemmTask<double>&);

template <class T>
void gemm(Transpose transpose_a, Transpose transpose_b, int64_t m, int64_t n, int64_t k, T alpha,
          const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  gemm_batched(GemmTask<T>{.transpose_a = transpose_a,
                           .transpose_b = transpose_b,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = alpha,
                           .a = a,
                           .lda = lda,
                           .b = b,
                           .ldb = ldb,
                           .beta = beta,
                           .c = c,
                           .ldc = ldc});
}

template <class T>
void gemm_batched(const GemmTask<T>& task) {
  run_batch(task, fastest_backend(task));
}

template <class T>
void gemm_with_loops(const GemmLoops& loops, const GemmTask<T>& task) {
  const GemmSplit split = split_gemm(task.batch, task.m, task.n, task.k);
  if (split.shares_packing) {
    for_each_product(task, [&](const GemmTask<T>& one) {
      check(one);
      own_gemm_shared(loops, to_call(one));
    });
  } else if (split.cells() == 1) {
    gemm_batched(task);
  } else if (split.cells() > 1) {
    loops.run(split.cells(),
              [&](int64_t begin, int64_t end) { run_cells(task, split, begin, end); });
  }
}

template void gemm(Transpose, Transpose, int64_t, int64_t, int64_t, float, const float*, int64_t,
                   const float*, int64_t, float, float*, int64_t);
template void gemm(Transpose, Transpose, int64_t, int64_t, int64_t, double, const double*, int64_t,
                   const double*, int64_t, double, double*, int64_t);
template void gemm_batched(const GemmTask<float>&);
template void gemm_batched(const GemmTask<double>&);
template void gemm_with_loops(const GemmLoops&, const GemmTask<float>&);
template void gemm_with_loops(const GemmLoops&, const GemmTask<double>&);

}  // namespace flow::ops
