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

// Operand 0 of the loop is the output, operand i + 1 is input i.
template <class Step, class T>
__global__ void update(DeviceLoop<1 + Step::kTensors> loop, Step step,
                       UpdateTensors<T, Step::kTensors> tensors) {
  using C = DeviceCompute<T>;
  const auto numbers = step.template numbers<C>();
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
  const auto loop = device_loop<1 + kTensors>(ctx.state_as<LoopNest>());
  cuda::launch(update<Step, T>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, Step(ctx),
               update_tensors<T, kTensors>(ctx, Step::kMutates));
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
