// What the optimizer steps share on CUDA devices: one pass over a parameter and its state, which a
// step of ops/optimizer/update_steps.h updates element by element.
#pragma once

#include <algorithm>
#include <bit>
#include <iterator>

#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/kernel/many_tensors_cuda.cuh"

namespace flow::ops {

// The tensors of the parameter's shape. Outputs have the strides of the inputs that they replace.
template <class Step, class T>
struct UpdateTensors {
  const T* in[Step::kTensors];
  T* out[std::popcount(Step::kMutates)];

  explicit UpdateTensors(const KernelContext& ctx) {
    for (int k = 0; k < Step::kTensors; ++k) {
      in[k] = ctx.in(k).as<T>();
      if (writes(k)) out[output_of(k)] = ctx.out(output_of(k)).as<T>();
    }
  }

  FLOW_HOST_DEVICE static constexpr bool writes(int k) { return (Step::kMutates >> k & 1) != 0; }

  FLOW_HOST_DEVICE static constexpr int output_of(int k) {
    int output = 0;
    for (int before = 0; before < k; ++before)
      output += writes(before) ? 1 : 0;
    return output;
  }

  bool have_packs() const {
    const auto is_aligned = [](const T* one) { return are_aligned(kPackCount<T>, one); };
    return std::all_of(std::begin(in), std::end(in), is_aligned) &&
           std::all_of(std::begin(out), std::end(out), is_aligned);
  }
};

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

// Of tensors without gaps.
template <class Step, class T>
struct UpdateWork {
  Step step;
  UpdateTensors<Step, T> tensors;
  int64_t numel;
  bool has_packs;

  explicit UpdateWork(const KernelContext& ctx)
      : step(ctx), tensors(ctx), numel(ctx.in(0).numel()), has_packs(tensors.have_packs()) {}

  static void launch(RankContext& rank, WorkTable<UpdateWork>& table) { run_on_many(rank, table); }

  __device__ void operator()(int64_t begin, int64_t end) const {
    constexpr int kCount = kPackCount<T>;
    const auto numbers = numbers_of<Step, DeviceCompute<T>>(step);
    const int64_t packs = has_packs ? end / kCount : begin / kCount;
    for (int64_t i = begin / kCount + threadIdx.x; i < packs; i += blockDim.x)
      update<kCount>(numbers, i);
    for (int64_t i = packs * kCount + threadIdx.x; i < end; i += blockDim.x)
      update<1>(numbers, i);
  }

  // The elements of pack i.
  template <int kCount, class Numbers>
  __device__ void update(const Numbers& numbers, int64_t i) const {
    constexpr int kTensors = Step::kTensors;
    Pack<T, kCount> pack[kTensors];
    FLOW_UNROLL
    for (int k = 0; k < kTensors; ++k)
      pack[k] = load_pack<kCount>(tensors.in[k], i);
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j) {
      DeviceCompute<T> values[kTensors];
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
      if (tensors.writes(k)) store_pack(tensors.out[tensors.output_of(k)], i, pack[k]);
  }
};

// Operand i of the loop is input i.
template <class Step, class T>
__global__ void update_strided(DeviceLoop<Step::kTensors> loop, Step step,
                               UpdateTensors<Step, T> tensors) {
  using C = DeviceCompute<T>;
  const auto numbers = numbers_of<Step, C>(step);
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    C values[Step::kTensors];
    FLOW_UNROLL
    for (int k = 0; k < Step::kTensors; ++k)
      values[k] = widen(tensors.in[k][offsets.at[k]]);
    step.run(numbers, values);
    FLOW_UNROLL
    for (int k = 0; k < Step::kTensors; ++k) {
      if (tensors.writes(k))
        tensors.out[tensors.output_of(k)][offsets.at[k]] = narrow<T>(values[k]);
    }
  }
}

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  if (state.is_flat()) return join_or_launch(ctx, UpdateWork<Step, T>(ctx));
  const auto loop = device_loop<Step::kTensors>(state);
  cuda::launch(update_strided<Step, T>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, Step(ctx), UpdateTensors<Step, T>(ctx));
}

template <class Step>
KernelChoice select_update(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { choice.fn = run_update<Step, T>; });
  choice.state = share_loop_nest(query.input(0), query.inputs.subspan(1, Step::kTensors - 1));
  return choice;
}

template <class Step>
void add_update(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_update<Step>});
}

}  // namespace flow::ops
