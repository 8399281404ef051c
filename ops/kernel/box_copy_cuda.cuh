// Copies boxes of elements between strided tensors on CUDA devices, as ops/kernel/box_copy.h does
// on the CPU.
#pragma once

#include "ops/kernel/box_copy.h"
#include "ops/kernel/pack_cuda.cuh"
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

template <class T>
void copy_elements(const KernelContext& ctx, const Shape& size, const BoxTarget& target,
                   const BoxSource& source) {
  for_each_element(
      ctx, size.numel(),
      CopyBox<T>{reinterpret_cast<T*>(target.data), Places(size, target.strides),
                 reinterpret_cast<const T*>(source.data), Places(size, source.strides)});
}

// Copies runs of 16 bytes if both sides are made of them.
inline bool copy_units(const KernelContext& ctx, Shape size, BoxTarget target, BoxSource source,
                       DType dtype) {
  const auto per_unit = static_cast<int64_t>(sizeof(Bytes16) / dtype_size(dtype));
  BoxDim dims[kMaxDims];
  int count = 0;
  for (int64_t d = 0; d < size.size(); ++d)
    if (size[d] != 1) dims[count++] = {&size[d], {&target.strides[d], &source.strides[d]}};
  if (!join_into_units(dims, count, per_unit, target.data, source.data)) return false;
  copy_elements<Bytes16>(ctx, size, target, source);
  return true;
}

// target[i] = source[i] for every index i of the box; elements have 1, 2, 4 or 8 bytes. Strides may
// be negative. The two must not overlap.
inline void copy_box(const KernelContext& ctx, const Shape& size, const BoxTarget& target,
                     const BoxSource& source, DType dtype) {
  if (size.numel() == 0 || copy_units(ctx, size, target, source, dtype)) return;
  dispatch_size(dtype, [&]<class T>() { copy_elements<T>(ctx, size, target, source); });
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
