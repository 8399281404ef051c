#pragma once

// Matrix product of raw host memory: the one door through which CPU ops multiply matrices.
//
// C = alpha * op(A) * op(B) + beta * C with op(A): (m, k), op(B): (k, n), C: (m, n), all row-major.
// A is stored as (m, k) with Transpose::kNo and as (k, m) with kYes, B likewise; lda, ldb, ldc are
// the distances between stored rows and at least the length of one. beta = 0 writes C without
// reading it. Sizes may be zero: k = 0 scales C by beta. A and B may not overlap C.
//
// gemm and gemm_batched run on the calling thread. Which kernel does the work (own, oneDNN,
// OpenBLAS) follows from the shape and the instruction set by a committed table (ops/gemm_table.h),
// never from timing. gemm_parallel cuts a product into cells by its shape alone, never along k, so
// its result does not depend on the number of threads:
//
//   gemm_parallel(parallel_for, GemmTask<float>{.m = 64, .n = 512, .k = 784, .a = x, .lda = 784,
//   ...});
//
// Any thread may call; distinct calls are independent.

#include <cstdint>

namespace flow::ops {

enum class Transpose { kNo, kYes };

// A batch of products; product i uses a + i * a_stride and so on. A stride of 0 shares an operand
// (not C). The default strides suit batch = 1.
template <class T>
struct GemmTask {
  Transpose transpose_a = Transpose::kNo;
  Transpose transpose_b = Transpose::kNo;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  T alpha = T{1};
  const T* a = nullptr;
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t ldb = 0;
  T beta = T{0};
  T* c = nullptr;
  int64_t ldc = 0;
  int64_t batch = 1;
  int64_t a_stride = 0;
  int64_t b_stride = 0;
  int64_t c_stride = 0;
};

// T: float, double.
template <class T>
void gemm(Transpose transpose_a, Transpose transpose_b, int64_t m, int64_t n, int64_t k, T alpha,
          const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

template <class T>
void gemm_batched(const GemmTask<T>& task);

// How a task is cut: cells of at most cell_batch products x cell_m rows x cell_n columns. A
// function of the sizes only.
struct GemmGrid {
  int64_t cell_batch = 1;
  int64_t cell_m = 0;
  int64_t cell_n = 0;
  int64_t batch_cells = 0;
  int64_t m_cells = 0;
  int64_t n_cells = 0;

  int64_t size() const { return batch_cells * m_cells * n_cells; }
};

GemmGrid gemm_grid(int64_t batch, int64_t m, int64_t n, int64_t k);

// Computes cells [begin, end) of the grid.
template <class T>
void gemm_cells(const GemmTask<T>& task, const GemmGrid& grid, int64_t begin, int64_t end);

// parallel_for(begin, end, grain, fn) calls fn(b, e) on disjoint ranges that cover [begin, end), on
// any threads, and returns when all are done.
template <class T, class ParallelFor>
void gemm_parallel(ParallelFor&& parallel_for, const GemmTask<T>& task) {
  const GemmGrid grid = gemm_grid(task.batch, task.m, task.n, task.k);
  if (grid.size() <= 1) {
    gemm_cells(task, grid, 0, grid.size());
    return;
  }
  parallel_for(int64_t{0}, grid.size(), int64_t{1},
               [&](int64_t begin, int64_t end) { gemm_cells(task, grid, begin, end); });
}

enum class GemmBackend { kReference, kOwn, kOneDnn, kOpenBlas };

// False if the back end is not built in, could not be loaded, or does not know the type (oneDNN: no
// double).
template <class T>
bool has_gemm_backend(GemmBackend backend);

// gemm by one back end, for tests, benchmarks and tools/calibrate. Requires:
// has_gemm_backend<T>(backend), sizes > 0.
template <class T>
void gemm_with(GemmBackend backend, const GemmTask<T>& task);

}  // namespace flow::ops
