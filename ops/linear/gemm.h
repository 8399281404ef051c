#pragma once

// Matrix product of raw host memory: the single function through which CPU ops multiply matrices.
//
// C = alpha * op(A) * op(B) + beta * C with op(A): (m, k), op(B): (k, n), C: (m, n), all row-major.
// A is stored as (m, k) with Transpose::kNo and as (k, m) with kYes, and B likewise; lda, ldb, ldc
// are the distances between stored rows and at least the length of one. beta = 0 writes C without
// reading it. Sizes may be zero: k = 0 scales C by beta. C overlaps neither A nor B.
//
// gemm and gemm_batched run on the calling thread. A committed table (ops/linear/cpu_table.h)
// chooses the back end (flow's own kernels, oneDNN, OpenBLAS) by the shape and the instruction set,
// never by timing. gemm_parallel divides products among threads by their shape alone, never along
// k, so its result does not depend on the number of threads:
//
//    gemm_parallel(parallel_for,
//                  GemmTask<float>{.m = 64, .n = 512, .k = 784, .a = x, .lda = 784, ...});
//
// Any thread may call these functions; distinct calls are independent. T: float, double.

#include <cstdint>
#include <type_traits>

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
  // n elements that are added to each row: C = op(A) * op(B) + bias. Requires: alpha = 1, beta = 0.
  const T* bias = nullptr;
  int64_t batch = 1;
  int64_t a_stride = 0;
  int64_t b_stride = 0;
  int64_t c_stride = 0;
};

template <class T>
void gemm(Transpose transpose_a, Transpose transpose_b, int64_t m, int64_t n, int64_t k, T alpha,
          const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

template <class T>
void gemm_batched(const GemmTask<T>& task);

// A type-erased reference to the caller's parallel_for. It must not outlive the call for which it
// is made.
class GemmLoops {
 public:
  template <class ParallelFor>
  explicit GemmLoops(ParallelFor& parallel_for)
      : parallel_for_(&parallel_for),
        run_([](const void* object, int64_t count, const void* body, Call call) {
          auto& loop = *static_cast<ParallelFor*>(const_cast<void*>(object));
          loop(int64_t{0}, count, int64_t{1},
               [=](int64_t begin, int64_t end) { call(body, begin, end); });
        }) {}

  // Calls body(begin, end) for ranges that cover [0, count).
  template <class Body>
  void run(int64_t count, const Body& body) const {
    run_(parallel_for_, count, &body, [](const void* object, int64_t begin, int64_t end) {
      (*static_cast<const Body*>(object))(begin, end);
    });
  }

 private:
  using Call = void (*)(const void* body, int64_t begin, int64_t end);

  const void* parallel_for_;
  void (*run_)(const void* parallel_for, int64_t count, const void* body, Call call);
};

template <class T>
void gemm_with_loops(const GemmLoops& loops, const GemmTask<T>& task);

// parallel_for(begin, end, grain, fn) calls fn(b, e) on disjoint ranges that cover [begin, end), on
// any threads, and returns when all are done.
template <class T, class ParallelFor>
void gemm_parallel(ParallelFor&& parallel_for, const GemmTask<T>& task) {
  gemm_with_loops(GemmLoops(parallel_for), task);
}

}  // namespace flow::ops
