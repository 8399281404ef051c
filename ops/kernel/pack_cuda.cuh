// Neighbouring elements that one instruction moves, 16 bytes at most.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernel/element_cuda.cuh"

namespace flow::ops {

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T element[kCount];
};

// The number of elements that packs of all these types have, if none has more than 16 bytes.
template <class... T>
inline constexpr int kPackCount = 16 / static_cast<int>(std::max({sizeof(T)...}));

// True if packs of `count` elements can begin at the addresses.
template <class... T>
bool are_aligned(int count, const T*... address) {
  return ((reinterpret_cast<uintptr_t>(address) % (sizeof(T) * static_cast<size_t>(count)) == 0) &&
          ...);
}

// An address that is not a multiple of `bytes` stops a device. The emulator checks packs, because
// the CPU loads most of them from everywhere.
#if !defined(FLOW_CUDA_CHECK_ALIGNMENT)
#define FLOW_CUDA_CHECK_ALIGNMENT(address, bytes)
#endif

template <int kCount, class T>
__device__ Pack<T, kCount> load_pack(const T* from, int64_t index) {
  FLOW_CUDA_CHECK_ALIGNMENT(from, sizeof(Pack<T, kCount>));
  return reinterpret_cast<const Pack<T, kCount>*>(from)[index];
}

template <int kCount, class T>
__device__ void store_pack(T* to, int64_t index, const Pack<T, kCount>& pack) {
  FLOW_CUDA_CHECK_ALIGNMENT(to, sizeof(pack));
  reinterpret_cast<Pack<T, kCount>*>(to)[index] = pack;
}

// Sixteen bytes that are moved but not computed with.
struct alignas(16) Bytes16 {
  uint64_t half[2];
};

// A box of elements, of which kOperands tensors have strides along each dim.
struct BoxDim {
  int64_t* size;
  int64_t* stride[2];
};

// Makes a box that two tensors share one of units of 16 bytes, `per_unit` elements each, and
// returns true; or returns false if the innermost dim, the last one, is not made of such units in
// both.
inline bool join_into_units(BoxDim* dims, int count, int64_t per_unit, const void* first,
                            const void* second) {
  if (count == 0 || per_unit == 1 || !are_aligned(1, static_cast<const Bytes16*>(first)) ||
      !are_aligned(1, static_cast<const Bytes16*>(second))) {
    return false;
  }
  const BoxDim& inner = dims[count - 1];
  if (*inner.size % per_unit != 0 || *inner.stride[0] != 1 || *inner.stride[1] != 1) return false;
  for (int d = 0; d < count - 1; ++d) {
    for (const int64_t* stride : dims[d].stride)
      if (*stride % per_unit != 0) return false;
  }
  *inner.size /= per_unit;
  for (int d = 0; d < count - 1; ++d) {
    for (int64_t* stride : dims[d].stride)
      *stride /= per_unit;
  }
  return true;
}

}  // namespace flow::ops
