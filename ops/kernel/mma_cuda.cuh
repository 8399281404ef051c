// Products of small 16-bit matrices on the tensor cores of a warp. A lane holds parts of each
// matrix, in the layout that the PTX ISA gives for mma.m16n8k16. With g = lane / 4, t = lane % 4
// and pairs of neighbouring elements in one register:
//   a (16, 16): [0] row g, columns 2t; [1] row g + 8; [2], [3] the same rows, columns 2t + 8
//   b (16, 8):  [0] rows 2t and 2t + 1 of column g; [1] rows 2t + 8 and 2t + 9
//   c (16, 8):  [0], [1] row g, columns 2t and 2t + 1; [2], [3] row g + 8
// Builds that emulate CUDA have the same functions in tests/support/cuda_emulator.
#pragma once

#include "ops/kernel/element_cuda.cuh"

#if !defined(__CUDACC__)
#include <tensor_cores.h>
#endif

namespace flow::ops {

// Two elements in memory.
using PairBits [[gnu::may_alias]] = uint32_t;

#if defined(__CUDACC__)

// c += a b
template <class T>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// Loads four (8, 8) matrices from shared memory. Lane 8 i + r gives the address of row r of matrix
// i, a multiple of 16 bytes. tiles[i] gets columns 2t and 2t + 1 of row g of matrix i; if
// transposed, rows 2t and 2t + 1 of column g.
template <bool kTransposed>
__device__ inline void load_tiles(uint32_t (&tiles)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
  }
}

// Begins to copy 16 bytes to shared memory, or zeros unless `is_inside`. Both addresses are
// multiples of 16 bytes.
__device__ inline void begin_copy(uint16_t* to, const void* from, bool is_inside) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(is_inside ? 16 : 0)
               : "memory");
}

// The copies that the thread has begun since the last call are a group.
__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for the thread's groups but the last kLater ones.
template <int kLater>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}

// Two numbers as a pair of T, rounded to nearest even.
template <class T>
__device__ inline uint32_t pack_pair(float first, float second) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  }
  return pair;
}

// 2^x with a relative error of about 2^-22; 0 where the result is not normal.
__device__ inline float exp2_approximately(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

#else

using cuda_emulator::begin_copy;
using cuda_emulator::end_copy_group;
using cuda_emulator::exp2_approximately;
using cuda_emulator::load_tiles;
using cuda_emulator::multiply_add;
using cuda_emulator::pack_pair;
using cuda_emulator::wait_for_copies;

#endif

}  // namespace flow::ops
