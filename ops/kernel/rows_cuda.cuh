// Helpers that CUDA kernels share: the conversion of elements, loops over rows, and sums within a
// team of threads. Sums are combined in an order that depends only on the shape.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/device/cuda_launch.h"
#include "core/kernel.h"
#include "ops/kernel/dispatch_size.h"
#include "ops/kernel/element_cuda.cuh"

namespace flow::ops {

template <class T>
inline constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFloat = kIsFloat16<T> || std::is_floating_point_v<T>;
template <class T>
using Wide = DeviceCompute<T>;

struct Quotient {
  int64_t quotient;
  int64_t rest;
};

// a / b and a % b for a >= 0, b > 0. They use 32 bits if both numbers fit, which is several times
// as fast.
__host__ __device__ inline Quotient divide(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto narrow_a = static_cast<uint32_t>(a);
    const auto narrow_b = static_cast<uint32_t>(b);
    return {narrow_a / narrow_b, narrow_a % narrow_b};
  }
  return {a / b, a % b};
}

// The offset of element `i`, row-major, of a strided box. Passed to kernels by value.
struct Places {
  int num_dims = 0;
  int64_t size[kMaxDims] = {};
  int64_t stride[kMaxDims] = {};

  Places() = default;

  Places(const Shape& shape, const Strides& strides) {
    // Dims of size 1 are removed and neighbouring dims merged, because divisions dominate the cost.
    for (int64_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (num_dims > 0 && stride[num_dims - 1] == strides[d] * shape[d]) {
        size[num_dims - 1] *= shape[d];
        stride[num_dims - 1] = strides[d];
        continue;
      }
      size[num_dims] = shape[d];
      stride[num_dims++] = strides[d];
    }
  }

  explicit Places(const TensorMeta& meta) : Places(meta.local_shape, meta.strides) {}

  __host__ __device__ int64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (int d = num_dims - 1; d > 0; --d) {
      const auto [quotient, rest] = divide(i, size[d]);
      at += rest * stride[d];
      i = quotient;
    }
    return num_dims > 0 ? at + i * stride[0] : at;
  }
};

inline constexpr int64_t kMaxBlocks = 1 << 16;

template <class F>
__global__ void element_kernel(F f, int64_t n) {
  for (int64_t i = grid_thread(); i < n; i += grid_threads())
    f(i);
}

// Calls f(i) for i < n, with one thread for each i. F is a struct at namespace scope that holds its
// operands as members.
template <class F>
void for_each_element(const KernelContext& ctx, int64_t n, const F& f) {
  cuda::launch(element_kernel<F>, cuda::blocks_for(n), cuda::kBlockThreads, 0, cuda::stream_of(ctx),
               f, n);
}

// The threads that work on one row. A Team are the threads of a block along x; Alone is one thread.
struct Alone {
  __device__ int64_t first() const { return 0; }

  __device__ int64_t step() const { return 1; }

  __device__ bool leads() const { return true; }

  template <class C, class Join>
  __device__ C reduce(C value, Join /*join*/) const {
    return value;
  }

  template <class C>
  __device__ C sum(C value) const {
    return value;
  }
};

// The value of the lane whose number differs in `mask`; any trivially copyable type.
template <class C>
__device__ C exchange(const C& value, int mask) {
  if constexpr (std::is_arithmetic_v<C>) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
  } else {
    static_assert(sizeof(C) % sizeof(int) == 0);
    constexpr int kWords = sizeof(C) / sizeof(int);
    int words[kWords];
    C result;
    memcpy(words, &value, sizeof(C));
    for (int i = 0; i < kWords; ++i)
      words[i] = __shfl_xor_sync(0xffffffffu, words[i], mask);
    memcpy(&result, words, sizeof(C));
    return result;
  }
}

struct Team {
  __device__ int64_t first() const { return threadIdx.x; }

  __device__ int64_t step() const { return blockDim.x; }

  __device__ bool leads() const { return threadIdx.x == 0; }

  // All threads of the team must call this, and all get the same result: neighbouring lanes are
  // combined within a warp, then the warps in order.
  template <class C, class Join>
  __device__ C reduce(C value, Join join) const {
    for (int distance = 16; distance > 0; distance /= 2)
      value = join(value, exchange(value, distance));
    if (blockDim.x <= 32) return value;
    __shared__ C parts[32];
    __syncthreads();  // those of an earlier call are read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
      value = join(value, parts[warp]);
    return value;
  }

  template <class C>
  __device__ C sum(C value) const {
    return reduce(value, [](C a, C b) { return a + b; });
  }
};

inline constexpr unsigned kMostThreads = 1024;  // of a block

// Calls f(row, team) for the rows of this team. If there are more rows than blocks, the blocks step
// through the rows. Teams of one warp share a block, whose y dim counts them.
template <class F>
__device__ void for_team_rows(const F& f, int64_t rows) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
       row += step)
    f(row, Team{});
}

// Without the bound, the compiler may give a thread more registers than kMostThreads threads can
// have.
template <class F>
__global__ void __launch_bounds__(kMostThreads) team_kernel(F f, int64_t rows) {
  for_team_rows(f, rows);
}

// Calls f(row, team) for all rows of `size` elements each. The team has as many threads as that
// many elements can keep busy.
template <class F>
void for_each_row(const KernelContext& ctx, int64_t rows, int64_t size, const F& f) {
  if (rows == 0) return;
  unsigned threads = 32;
  while (threads < kMostThreads && int64_t{threads} * 4 < size)
    threads *= 2;
  const unsigned teams = threads == 32 ? 4 : 1;
  const int64_t blocks = std::min(kMaxBlocks, (rows + teams - 1) / teams);
  cuda::launch(team_kernel<F>, dim3(static_cast<unsigned>(blocks)), dim3(threads, teams), 0,
               cuda::stream_of(ctx), f, rows);
}

// Rows of which a thread takes many elements: several blocks share a multiprocessor, so that some
// load while others wait for each other's sums.
inline constexpr unsigned kLongRowThreads = 256;
inline constexpr int64_t kLongRow = 32 * kLongRowThreads;  // elements

template <class F>
__global__ void __launch_bounds__(kLongRowThreads, 5) long_row_kernel(F f, int64_t rows) {
  for_team_rows(f, rows);
}

template <class F>
void for_each_long_row(const KernelContext& ctx, int64_t rows, const F& f) {
  if (rows == 0) return;
  cuda::launch(long_row_kernel<F>, dim3(static_cast<unsigned>(std::min(kMaxBlocks, rows))),
               dim3(kLongRowThreads), 0, cuda::stream_of(ctx), f, rows);
}

// *to = the sum of n doubles.
template <class T>
struct SumAll {
  const double* from;
  int64_t n;
  T* to;

  __device__ void operator()(int64_t /*row*/, Team team) const {
    double sum = 0;
    for (int64_t i = team.first(); i < n; i += team.step())
      sum += from[i];
    sum = team.sum(sum);
    if (team.leads()) *to = static_cast<T>(sum);
  }
};

template <class T>
void sum_all(const KernelContext& ctx, const double* from, int64_t n, T* to) {
  for_each_row(ctx, 1, n, SumAll<T>{from, n, to});
}

// `count` elements of scratch memory.
template <class T>
class ScratchArray {
 public:
  ScratchArray() = default;

  ScratchArray(const KernelContext& ctx, int64_t count)
      : memory_(ctx.scratch(static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T))) {}

  T* data() const { return reinterpret_cast<T*>(memory_->data()); }

 private:
  Ref<Storage> memory_;
};

// One thread for each row.
template <class F>
struct AloneCall {
  F f;

  __device__ void operator()(int64_t row) const { f(row, Alone{}); }
};

// Fewer long slices do not keep a device busy with one thread for each.
inline constexpr int64_t kManySlices = 4096;

// Calls f(slice, team) for all slices of `size` elements that are `inner` elements apart. If there
// are enough slices, neighbouring threads work on neighbouring slices.
template <class F>
void for_each_slice(const KernelContext& ctx, int64_t slices, int64_t size, int64_t inner,
                    const F& f) {
  if (inner == 1 && size >= kLongRow) return for_each_long_row(ctx, slices, f);
  const bool is_few = slices < kManySlices && size >= 32;
  if (inner < 32 || is_few) return for_each_row(ctx, slices, size, f);
  for_each_element(ctx, slices, AloneCall<F>{f});
}

template <class T>
struct GatherElements {
  const T* from;
  T* to;
  Places places;

  __device__ void operator()(int64_t i) const { to[i] = from[places(i)]; }
};

// Input `i` as a contiguous array that begins at a multiple of `alignment` bytes: the tensor's
// memory, or a copy that lives as long as this object. Null for an optional input that was not
// given.
class DenseInput {
 public:
  DenseInput(const KernelContext& ctx, int input, size_t alignment = 1) {
    if (!ctx.has_input(input)) return;
    const TensorView& view = ctx.in(input);
    data_ = view.data;
    const bool is_aligned = reinterpret_cast<uintptr_t>(data_) % alignment == 0;
    if ((view.meta->is_contiguous && is_aligned) || view.numel() == 0) return;
    copy_ = ctx.scratch(static_cast<size_t>(view.numel()) * dtype_size(view.meta->dtype));
    data_ = copy_->data();
    dispatch_size(view.meta->dtype, [&]<class T>() {
      for_each_element(
          ctx, view.numel(),
          GatherElements<T>{view.as<T>(), reinterpret_cast<T*>(copy_->data()), Places(*view.meta)});
    });
  }

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  Ref<Storage> copy_;
  const std::byte* data_ = nullptr;
};

// The local shape as (outer, size, inner) around `dim`.
struct Slices {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  Slices(const Shape& shape, int64_t dim) {
    for (int64_t i = 0; i < shape.size(); ++i)
      (i < dim ? outer : i == dim ? size : inner) *= shape[i];
  }

  // The offset of slice `index`; its elements are `inner` elements apart.
  __host__ __device__ int64_t begin(int64_t index) const {
    if (inner == 1) return index * size;
    const auto [quotient, rest] = divide(index, inner);
    return quotient * size * inner + rest;
  }

  int64_t count() const { return outer * inner; }
};

}  // namespace flow::ops
