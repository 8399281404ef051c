// The features that device code may use: qualifiers, built-in variables, barriers, shuffles, votes,
// atomics, and the few mathematical functions that only CUDA has.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// All threads of a block run on one system thread, from start to end.
#define __shared__ static thread_local
#define __align__(bytes) alignas(bytes)
#define FLOW_CUDA_DYNAMIC_SHARED(Type, name) \
  Type* const name = static_cast<Type*>(cuda_emulator::dynamic_shared())
#define FLOW_CUDA_CHECK_ALIGNMENT(address, bytes) cuda_emulator::check_alignment(address, bytes)

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

struct dim3 {
  unsigned x, y, z;

  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1)
      : x(in_x), y(in_y), z(in_z) {}
};

struct alignas(16) [[gnu::may_alias]] float4 {
  float x, y, z, w;
};

struct alignas(8) float2 {
  float x, y;
};

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

namespace cuda_emulator {

void* dynamic_shared();
// Waits for all unfinished threads of the block, or for the lanes of the warp in `mask`.
void block_barrier();
void warp_barrier(unsigned mask);
unsigned lane();
// Publishes `value` to the lanes of the warp and waits for those in `mask`. Returns the values of
// all lanes, valid until the lane's next exchange.
const uint64_t* exchange(unsigned mask, uint64_t value);

// Copies 16 bytes (zeros for a null source) to shared memory, when the thread waits for it: a copy
// that it does not wait for never runs. Other orders than forward also copy at once.
void begin_copy(void* to, const void* from);
void end_copy_group();
// Waits for all of the thread's groups but the last `later` ones.
void wait_for_copies(int later);
// The error of an address that is not a multiple of `unit`, which a device refuses.
void check_alignment(const void* address, size_t unit);

template <class T>
uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// The lane at `index` of this lane's group of `width` lanes; this lane if `index` is outside of the
// group.
inline unsigned lane_in_group(int index, int width) {
  const unsigned own = lane();
  const auto size = static_cast<unsigned>(width);
  const unsigned first = own / size * size;
  return index < 0 || index >= width ? own : first + static_cast<unsigned>(index);
}

}  // namespace cuda_emulator

inline void __syncthreads() {
  cuda_emulator::block_barrier();
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  cuda_emulator::warp_barrier(mask);
}

inline void __threadfence() {}

inline void __threadfence_block() {}

inline void __threadfence_system() {}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const uint64_t* values = cuda_emulator::exchange(mask, cuda_emulator::to_bits(value));
  const unsigned from = cuda_emulator::lane_in_group(source & (width - 1), width);
  return cuda_emulator::from_bits<T>(values[from]);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  const uint64_t* values = cuda_emulator::exchange(mask, cuda_emulator::to_bits(value));
  const auto size = static_cast<unsigned>(width);
  const int index = static_cast<int>(cuda_emulator::lane() % size) ^ lanes;
  return cuda_emulator::from_bits<T>(values[cuda_emulator::lane_in_group(index, width)]);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const uint64_t* values = cuda_emulator::exchange(mask, cuda_emulator::to_bits(value));
  const auto size = static_cast<unsigned>(width);
  const int index = static_cast<int>(cuda_emulator::lane() % size + delta);
  return cuda_emulator::from_bits<T>(values[cuda_emulator::lane_in_group(index, width)]);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const uint64_t* values = cuda_emulator::exchange(mask, cuda_emulator::to_bits(value));
  const auto size = static_cast<unsigned>(width);
  const int index = static_cast<int>(cuda_emulator::lane() % size) - static_cast<int>(delta);
  return cuda_emulator::from_bits<T>(values[cuda_emulator::lane_in_group(index, width)]);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const uint64_t* values = cuda_emulator::exchange(mask, predicate != 0 ? 1 : 0);
  unsigned votes = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1u) != 0 && values[i] != 0) votes |= 1u << i;
  }
  return votes;
}

inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0 ? 1 : 0;
}

inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0 ? 1 : 0) == 0 ? 1 : 0;
}

// One system thread runs a kernel, and kernels of several streams run one after another.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = static_cast<T>(old + value);
  return old;
}

template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  if (value > old) *address = value;
  return old;
}

template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  if (value < old) *address = value;
  return old;
}

template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old | value;
  return old;
}

template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = value;
  return old;
}

template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}

inline int __clz(int bits) {
  return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits));
}

inline float __uint_as_float(unsigned bits) {
  return cuda_emulator::from_bits<float>(bits);
}

inline unsigned __float_as_uint(float value) {
  return static_cast<unsigned>(cuda_emulator::to_bits(value));
}

inline int __float_as_int(float value) {
  return static_cast<int>(__float_as_uint(value));
}

inline float __int_as_float(int bits) {
  return __uint_as_float(static_cast<unsigned>(bits));
}

inline long long __double_as_longlong(double value) {
  return static_cast<long long>(cuda_emulator::to_bits(value));
}

inline double __longlong_as_double(long long bits) {
  return cuda_emulator::from_bits<double>(static_cast<uint64_t>(bits));
}

inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}

inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}

inline float __expf(float x) {
  return std::exp(x);
}

inline float __fdividef(float a, float b) {
  return a / b;
}
