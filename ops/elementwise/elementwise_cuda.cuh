// Elementwise CUDA kernels: y[i] = f(x...[i]) for operands of any strides, with broadcasting.
//
//   run_elementwise<Y, X...>(ctx, f)   f: a functor that is copied to the device, with
//                                      __device__ auto operator()(DeviceCompute<X>...) const
//
// The kernel state of the call is a LoopNest of the output and the inputs;
// choose_elementwise(query, fn) selects it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "ops/kernel/pack_cuda.cuh"
#include "ops/kernel/strided_loop.h"

namespace flow::ops {

// A LoopNest in the form that kernels take; dim 0 is the innermost.
template <int kOperands>
struct DeviceLoop {
  int64_t numel = 0;
  int num_dims = 0;
  int64_t size[kMaxDims] = {};
  int64_t stride[kMaxDims][kOperands] = {};  // operand 0 is the output
};

template <int kOperands>
DeviceLoop<kOperands> device_loop(const LoopNest& state) {
  DeviceLoop<kOperands> loop;
  loop.numel = state.rows * state.inner;
  loop.num_dims = state.num_dims;
  for (int d = 0; d < state.num_dims; ++d) {
    const auto from = static_cast<size_t>(state.num_dims - 1 - d);
    loop.size[d] = state.size[from];
    for (int k = 0; k < kOperands; ++k)
      loop.stride[d][k] = state.stride[from][static_cast<size_t>(k)];
  }
  return loop;
}

// The position of item i of a loop in each operand, in elements.
template <int kOperands>
struct DeviceOffsets {
  int64_t at[kOperands];
};

template <int kOperands>
__device__ inline DeviceOffsets<kOperands> offsets_of(const DeviceLoop<kOperands>& loop,
                                                      int64_t item) {
  DeviceOffsets<kOperands> offsets = {};
  const int outermost = loop.num_dims - 1;
  for (int d = 0; d < outermost; ++d) {
    const int64_t index = item % loop.size[d];
    item /= loop.size[d];
    for (int k = 0; k < kOperands; ++k)
      offsets.at[k] += index * loop.stride[d][k];
  }
  for (int k = 0; k < kOperands; ++k)
    offsets.at[k] += item * loop.stride[outermost][k];
  return offsets;
}

namespace internal {

// f of each element of the packs.
template <class Y, int kCount, class F, class... X>
__device__ inline Pack<Y, kCount> apply_to_packs(const F& f, const Pack<X, kCount>... x) {
  Pack<Y, kCount> y;
  FLOW_UNROLL
  for (int j = 0; j < kCount; ++j)
    y.element[j] = narrow<Y>(static_cast<DeviceCompute<Y>>(f(widen(x.element[j])...)));
  return y;
}

// The first elements are handled as packs; there are none if an operand is not aligned.
template <class F, class Y, class... X>
__global__ void elementwise_flat(int64_t n, int64_t packs, F f, Y* y, const X*... x) {
  constexpr int kCount = kPackCount<Y, X...>;
  for (int64_t i = grid_thread(); i < packs; i += grid_threads())
    store_pack(y, i, apply_to_packs<Y, kCount>(f, load_pack<kCount>(x, i)...));
  for (int64_t i = packs * kCount + grid_thread(); i < n; i += grid_threads())
    y[i] = narrow<Y>(static_cast<DeviceCompute<Y>>(f(widen(x[i])...)));
}

template <class F, class Y, class... X>
void launch_flat(cudaStream_t stream, int64_t n, const F& f, Y* y, const X*... x) {
  constexpr int kCount = kPackCount<Y, X...>;
  const int64_t packs = are_aligned(kCount, y, x...) ? n / kCount : 0;
  cuda::launch(elementwise_flat<F, Y, X...>, cuda::blocks_for(std::max(packs, n - packs * kCount)),
               cuda::kBlockThreads, 0, stream, n, packs, f, y, x...);
}

template <class... X>
struct DevicePointers;

template <>
struct DevicePointers<> {};

template <class First, class... Rest>
struct DevicePointers<First, Rest...> {
  const First* first;
  DevicePointers<Rest...> rest;
};

// f of the inputs' elements, gathered one by one.
template <int kInput, class F, class Offsets, class... Values>
__device__ inline auto apply_at(const F& f, const Offsets& /*offsets*/, DevicePointers<> /*x*/,
                                Values... values) {
  return f(values...);
}

template <int kInput, class F, class Offsets, class First, class... Rest, class... Values>
__device__ inline auto apply_at(const F& f, const Offsets& offsets,
                                DevicePointers<First, Rest...> x, Values... values) {
  return apply_at<kInput + 1>(f, offsets, x.rest, values..., widen(x.first[offsets.at[kInput]]));
}

template <class F, class Y, class... X>
__global__ void elementwise_strided(DeviceLoop<1 + sizeof...(X)> loop, F f, Y* y,
                                    DevicePointers<X...> x) {
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    y[offsets.at[0]] = narrow<Y>(static_cast<DeviceCompute<Y>>(apply_at<1>(f, offsets, x)));
  }
}

inline DevicePointers<> device_pointers() {
  return {};
}

template <class First, class... Rest>
DevicePointers<First, Rest...> device_pointers(const First* first, const Rest*... rest) {
  return {first, device_pointers(rest...)};
}

template <class Y, class... X, class F, size_t... kInput>
void run_elementwise(const KernelContext& ctx, const F& f, std::index_sequence<kInput...> /*in*/) {
  const auto& state = ctx.state_as<LoopNest>();
  const cudaStream_t stream = cuda::stream_of(ctx);
  const int64_t numel = state.rows * state.inner;
  // Integers take the general loop, because they are rare and each form adds code to compile.
  if constexpr ((is_floating(dtype_of<Y>) || ... || is_floating(dtype_of<X>))) {
    if (state.is_flat()) {
      launch_flat(stream, numel, f, ctx.out(0).as<Y>(),
                  static_cast<const X*>(ctx.inputs[kInput].as<X>())...);
      return;
    }
  }
  cuda::launch(elementwise_strided<F, Y, X...>, cuda::blocks_for(numel), cuda::kBlockThreads, 0,
               stream, device_loop<1 + sizeof...(X)>(state), f, ctx.out(0).as<Y>(),
               device_pointers<X...>(ctx.inputs[kInput].as<X>()...));
}

}  // namespace internal

// Output 0 has type Y; the first sizeof...(X) inputs have types X...
template <class Y, class... X, class F>
void run_elementwise(const KernelContext& ctx, const F& f) {
  internal::run_elementwise<Y, X...>(ctx, f, std::index_sequence_for<X...>());
}

// Returns fn with the LoopNest that it needs. If fn is null, the kernel is not applicable.
inline KernelChoice choose_elementwise(const KernelQuery& query, KernelFn fn) {
  if (fn == nullptr) return {};
  return {fn, share_loop_nest(query.output(0), query.inputs)};
}

}  // namespace flow::ops
