// Elements of tensors in device code: the 16-bit types are stored as 16 bits and computed in float.
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/device/cuda_launch.h"
#include "core/dtype.h"

// Unroll the loop that follows: whole, so that it can index registers, or by some steps, so that
// their loads are under way together.
#if defined(__CUDACC__)
#define FLOW_UNROLL _Pragma("unroll")
#define FLOW_UNROLL_4 _Pragma("unroll 4")
#define FLOW_UNROLL_16 _Pragma("unroll 16")
#else
#define FLOW_UNROLL
#define FLOW_UNROLL_4
#define FLOW_UNROLL_16
#endif

namespace flow::ops {

// The type in which elements of type T are computed.
template <class T>
using DeviceCompute = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
__device__ inline DeviceCompute<T> widen(T x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return __half2float(__ushort_as_half(x.bits));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return __bfloat162float(__ushort_as_bfloat16(x.bits));
  } else {
    return x;
  }
}

// Rounds to nearest even where T is a 16-bit type.
template <class T>
__device__ inline T narrow(DeviceCompute<T> x) {
  if constexpr (std::is_same_v<T, Float16>) {
    T result;
    result.bits = __half_as_ushort(__float2half_rn(x));
    return result;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    T result;
    result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return result;
  } else {
    return x;
  }
}

// a b, rounded. A compiler that fuses the product with a later sum or difference leaves the
// rounding error where that should be 0.
template <class C>
__device__ inline C rounded_product(C a, C b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<C, double>) return __dmul_rn(a, b);
  if constexpr (std::is_same_v<C, float>) return __fmul_rn(a, b);
#endif
  return a * b;
}

// This thread's first item of a loop over all items of the grid, and the step to its next one.
__device__ inline int64_t grid_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline int64_t grid_threads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace flow::ops
