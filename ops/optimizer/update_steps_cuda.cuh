// What the optimizer steps share on CUDA devices: one pass over a parameter and its state, which a
// step of ops/optimizer/update_steps.h updates element by element.
#pragma once

#include <bit>
#include <utility>

#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/kernel/many_tensors_cuda.cuh"
#include "ops/optimizer/update_steps.h"

namespace flow::ops {

// The tensors of the parameter's shape. Outputs have the strides of the inputs that they replace.
template <class Step, class T>
struct UpdateTensors {
  // Packs of this many elements of every tensor are of 16 bytes at most.
  static constexpr int kCount = kPackCount<T, UpdateElement<Step, T, Step::kTensors - 1>>;

  const void* in[Step::kTensors];
  void* out[std::popcount(Step::kMutates)];

  explicit UpdateTensors(const KernelContext& ctx) {
    for (int k = 0; k < Step::kTensors; ++k) {
      in[k] = ctx.in(k).data;
      if (writes(k)) out[output_of(k)] = ctx.out(output_of(k)).data;
    }
  }

  FLOW_HOST_DEVICE static constexpr bool writes(int k) { return (Step::kMutates >> k & 1) != 0; }

  FLOW_HOST_DEVICE static constexpr int output_of(int k) {
    int output = 0;
    for (int before = 0; before < k; ++before)
      output += writes(before) ? 1 : 0;
    return output;
  }

  template <int k>
  FLOW_HOST_DEVICE const UpdateElement<Step, T, k>* input() const {
    return static_cast<const UpdateElement<Step, T, k>*>(in[k]);
  }

  template <int k>
  FLOW_HOST_DEVICE UpdateElement<Step, T, k>* output() const {
    return static_cast<UpdateElement<Step, T, k>*>(out[output_of(k)]);
  }

  bool have_packs() const { return have_packs(std::make_integer_sequence<int, Step::kTensors>()); }

 private:
  template <int... k>
  bool have_packs(std::integer_sequence<int, k...> /*inputs*/) const {
    return (are_aligned(kCount, input<k>()) && ...) &&
           ((!writes(k) || are_aligned(kCount, output<k>())) && ...);
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

// Updates one element. v[k] is of input k.
template <class T, class Step, class Numbers>
__device__ void run_step(const Step& step, const Numbers& numbers, DeviceCompute<T>* v) {
  if constexpr (kHasMaster<Step>) {
    step.run(numbers, v, [](float x) { return widen(narrow<T>(x)); });
  } else {
    step.run(numbers, v);
  }
}

// Of tensors without gaps.
template <class Step, class T>
struct UpdateWork {
  using Tensors = UpdateTensors<Step, T>;
  using Inputs = std::make_integer_sequence<int, Step::kTensors>;

  Step step;
  Tensors tensors;
  int64_t numel;
  bool has_packs;

  explicit UpdateWork(const KernelContext& ctx)
      : step(ctx), tensors(ctx), numel(ctx.in(0).numel()), has_packs(tensors.have_packs()) {}

  static void launch(RankContext& rank, WorkTable<UpdateWork>& table) { run_on_many(rank, table); }

  __device__ void operator()(int64_t begin, int64_t end) const {
    constexpr int kCount = Tensors::kCount;
    const auto numbers = numbers_of<Step, DeviceCompute<T>>(step);
    const int64_t packs = has_packs ? end / kCount : begin / kCount;
    for (int64_t i = begin / kCount + threadIdx.x; i < packs; i += blockDim.x)
      update<kCount>(numbers, i, Inputs());
    for (int64_t i = packs * kCount + threadIdx.x; i < end; i += blockDim.x)
      update<1>(numbers, i, Inputs());
  }

  // The elements of pack i.
  template <int kCount, class Numbers, int... k>
  __device__ void update(const Numbers& numbers, int64_t i,
                         std::integer_sequence<int, k...> /*inputs*/) const {
    DeviceCompute<T> values[kCount][Step::kTensors];
    (load<k, kCount>(values, i), ...);
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      run_step<T>(step, numbers, values[j]);
    (store<k, kCount>(values, i), ...);
  }

  template <int k, int kCount>
  __device__ void load(DeviceCompute<T> (&values)[kCount][Step::kTensors], int64_t i) const {
    const auto pack = load_pack<kCount>(tensors.template input<k>(), i);
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      values[j][k] = widen(pack.element[j]);
  }

  template <int k, int kCount>
  __device__ void store(const DeviceCompute<T> (&values)[kCount][Step::kTensors], int64_t i) const {
    if constexpr (Tensors::writes(k)) {
      using Own = UpdateElement<Step, T, k>;
      Pack<Own, kCount> pack;
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        pack.element[j] = narrow<Own>(values[j][k]);
      store_pack(tensors.template output<k>(), i, pack);
    }
  }
};

template <int k, class Step, class T, class Offsets>
__device__ void store_strided(const UpdateTensors<Step, T>& tensors, const Offsets& offsets,
                              const DeviceCompute<T>* values) {
  if constexpr (UpdateTensors<Step, T>::writes(k)) {
    tensors.template output<k>()[offsets.at[k]] = narrow<UpdateElement<Step, T, k>>(values[k]);
  }
}

// Element i of the loop.
template <class Step, class T, class Numbers, int... k>
__device__ void update_element(const DeviceLoop<Step::kTensors>& loop, const Step& step,
                               const Numbers& numbers, const UpdateTensors<Step, T>& tensors,
                               int64_t i, std::integer_sequence<int, k...> /*inputs*/) {
  const auto offsets = offsets_of(loop, i);
  DeviceCompute<T> values[] = {widen(tensors.template input<k>()[offsets.at[k]])...};
  run_step<T>(step, numbers, values);
  (store_strided<k>(tensors, offsets, values), ...);
}

// Operand i of the loop is input i.
template <class Step, class T>
__global__ void update_strided(DeviceLoop<Step::kTensors> loop, Step step,
                               UpdateTensors<Step, T> tensors) {
  const auto numbers = numbers_of<Step, DeviceCompute<T>>(step);
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    update_element(loop, step, numbers, tensors, i,
                   std::make_integer_sequence<int, Step::kTensors>());
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
  dispatch_floating(query.output(0).dtype, [&]<class T>() {
    if constexpr (kIsHalf<T> || !kHasMaster<Step>) choice.fn = run_update<Step, T>;
  });
  choice.state = share_loop_nest(query.input(0), query.inputs.subspan(1, Step::kTensors - 1));
  return choice;
}

template <class Step>
void add_update(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_update<Step>});
}

}  // namespace flow::ops
