// Copies boxes of elements between strided tensors on CUDA devices, as ops/kernel/box_copy.h does
// on the CPU.
#pragma once

#include "ops/kernel/box_copy.h"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

template <class T>
struct CopyBox {
  T* to;
  Places to_places;
  const T* from;
  Places from_places;

  __device__ void operator()(int64_t i) const { to[to_places(i)] = from[from_places(i)]; }
};

// target[i] = source[i] for every index i of the box; elements have 1, 2, 4 or 8 bytes. Strides may
// be negative. The two must not overlap.
inline void copy_box(const KernelContext& ctx, const Shape& size, const BoxTarget& target,
                     const BoxSource& source, DType dtype) {
  dispatch_size(dtype, [&]<class T>() {
    for_each_element(
        ctx, size.numel(),
        CopyBox<T>{reinterpret_cast<T*>(target.data), Places(size, target.strides),
                   reinterpret_cast<const T*>(source.data), Places(size, source.strides)});
  });
}

// Copies the tensors' whole local parts, unless they are the same memory.
inline void copy_part(const KernelContext& ctx, const TensorView& target,
                      const TensorView& source) {
  if (target.data == source.data) return;
  copy_box(ctx, target.shape(), {target.data, target.strides()}, {source.data, source.strides()},
           target.meta->dtype);
}

template <class T>
struct FillPlaces {
  T* to;
  Places places;
  T value;

  __device__ void operator()(int64_t i) const { to[places(i)] = value; }
};

template <class T>
void fill_part(const KernelContext& ctx, const TensorView& target, T value) {
  for_each_element(ctx, target.numel(), FillPlaces<T>{target.as<T>(), Places(*target.meta), value});
}

inline void zero_part(const KernelContext& ctx, const TensorView& target) {
  dispatch_size(target.meta->dtype, [&]<class T>() { fill_part(ctx, target, T{0}); });
}

}  // namespace flow::ops
