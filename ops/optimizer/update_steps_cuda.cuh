// What the optimizer steps share on CUDA devices: one pass over a parameter and its state, which a
// step of ops/optimizer/update_steps.h updates element by element.
#pragma once

#include "ops/elementwise/elementwise_cuda.cuh"

namespace flow::ops {

// The inputs and outputs of the parameter's shape. Outputs have the strides of the inputs that they
// replace.
template <class T, int kTensors>
struct UpdateTensors {
  const T* in[kTensors];
  T* out[kTensors];  // null: not written
};

template <class T, int kTensors>
UpdateTensors<T, kTensors> update_tensors(const KernelContext& ctx, uint32_t mutates) {
  UpdateTensors<T, kTensors> tensors = {};
  int output = 0;
  for (int i = 0; i < kTensors; ++i) {
    tensors.in[i] = ctx.in(i).as<T>();
    if ((mutates >> i & 1) != 0) tensors.out[i] = ctx.out(output++).as<T>();
  }
  return tensors;
}

// What Step::numbers() makes, computed by one thread of the block, because it has powers of
// doubles.
template <class Step, class C>
__device__ auto numbers_of(const Step& step) {
  using Numbers = decltype(step.template numbers<C>());
  static_assert(std::is_trivially_copyable_v<Numbers>);
  __shared__ double memory[(sizeof(Numbers) + sizeof(double) - 1) / sizeof(double)];
  if (threadIdx.x == 0) {
    const Numbers own = step.template numbers<C>();
    memcpy(memory, &own, sizeof(Numbers));
  }
  __syncthreads();
  const void* const shared = memory;
  return *static_cast<const Numbers*>(shared);
}

// Tensors without gaps, whose first elements are handled as packs.
template <class Step, class T>
__global__ void update_flat(int64_t n, int64_t packs, Step step,
                            UpdateTensors<T, Step::kTensors> tensors) {
  using C = DeviceCompute<T>;
  constexpr int kCount = kPackCount<T>;
  constexpr int kTensors = Step::kTensors;
  const auto numbers = numbers_of<Step, C>(step);
  for (int64_t i = grid_thread(); i < packs; i += grid_threads()) {
    Pack<T, kCount> pack[kTensors];
    FLOW_UNROLL
    for (int k = 0; k < kTensors; ++k)
      pack[k] = load_pack<kCount>(tensors.in[k], i);
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j) {
      C values[kTensors];
      FLOW_UNROLL
      for (int k = 0; k < kTensors; ++k)
        values[k] = widen(pack[k].element[j]);
      step.run(numbers, values);
      FLOW_UNROLL
      for (int k = 0; k < kTensors; ++k)
        pack[k].element[j] = narrow<T>(values[k]);
    }
    FLOW_UNROLL
    for (int k = 0; k < kTensors; ++k)
      if (tensors.out[k] != nullptr) store_pack(tensors.out[k], i, pack[k]);
  }
  for (int64_t i = packs * kCount + grid_thread(); i < n; i += grid_threads()) {
    C values[kTensors];
    for (int k = 0; k < kTensors; ++k)
      values[k] = widen(tensors.in[k][i]);
    step.run(numbers, values);
    for (int k = 0; k < kTensors; ++k)
      if (tensors.out[k] != nullptr) tensors.out[k][i] = narrow<T>(values[k]);
  }
}

// Operand 0 of the loop is the output, operand i + 1 is input i.
template <class Step, class T>
__global__ void update(DeviceLoop<1 + Step::kTensors> loop, Step step,
                       UpdateTensors<T, Step::kTensors> tensors) {
  using C = DeviceCompute<T>;
  const auto numbers = numbers_of<Step, C>(step);
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    C values[Step::kTensors];
    for (int k = 0; k < Step::kTensors; ++k)
      values[k] = widen(tensors.in[k][offsets.at[k + 1]]);
    step.run(numbers, values);
    for (int k = 0; k < Step::kTensors; ++k) {
      if (tensors.out[k] != nullptr) tensors.out[k][offsets.at[k + 1]] = narrow<T>(values[k]);
    }
  }
}

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  constexpr int kTensors = Step::kTensors;
  const auto& state = ctx.state_as<LoopNest>();
  const auto loop = device_loop<1 + kTensors>(state);
  const auto tensors = update_tensors<T, kTensors>(ctx, Step::kMutates);
  if (state.is_flat()) {
    constexpr int kCount = kPackCount<T>;
    bool is_aligned = true;
    for (int k = 0; k < kTensors; ++k)
      is_aligned = is_aligned && are_aligned(kCount, tensors.in[k], tensors.out[k]);
    const int64_t packs = is_aligned ? loop.numel / kCount : 0;
    cuda::launch(
        update_flat<Step, T>, cuda::blocks_for(std::max(packs, loop.numel - packs * kCount)),
        cuda::kBlockThreads, 0, cuda::stream_of(ctx), loop.numel, packs, Step(ctx), tensors);
    return;
  }
  cuda::launch(update<Step, T>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, Step(ctx), tensors);
}

template <class Step>
KernelChoice select_update(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { choice.fn = run_update<Step, T>; });
  choice.state = share_loop_nest(query.output(0), query.inputs.first(Step::kTensors));
  return choice;
}

template <class Step>
void add_update(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_update<Step>});
}

}  // namespace flow::ops
