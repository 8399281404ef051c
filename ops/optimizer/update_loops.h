// What the optimizer steps share on the CPU: one pass over a parameter and its state, which a step
// of ops/optimizer/update_steps.h updates element by element. State is read from the inputs and
// written to the outputs. These are the same memory in eager mode and have the same strides
// otherwise.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ops/elementwise/elementwise_loops.h"
#include "ops/optimizer/update_steps.h"

#include "ops/kernel/isa_begin.h"

// Input `i`, which has the parameter's shape, and the output that it is written to; null if it is
// only read.
template <class T>
struct Slot {
  using Element = T;
  const T* in;
  T* out;
  int64_t stride;
};

template <class Step>
constexpr bool is_written(size_t input) {
  return (Step::kMutates >> input & 1U) != 0;
}

// The position in each tensor where a stretch of the loop begins. Operand i of the loop is input i.
// Outputs have the strides of their inputs. In the flat case the compiler knows that the stride is
// 1.
template <class Step, class T, bool kIsFlat>
struct Stretch {
  const KernelContext& ctx;
  const LoopNest& state;
  const LoopNest::Offsets& offsets;

  template <size_t kInput>
  auto slot() const {
    using Own = UpdateElement<Step, T, kInput>;
    constexpr uint32_t kWrittenBefore = Step::kMutates & ((1U << kInput) - 1);
    const int64_t offset = offsets[kInput];
    Slot<Own> slot{ctx.in(kInput).as<Own>() + offset, nullptr,
                   kIsFlat ? 1 : state.inner_stride()[kInput]};
    if constexpr (is_written<Step>(kInput))
      slot.out = ctx.out(std::popcount(kWrittenBefore)).as<Own>() + offset;
    return slot;
  }
};

// Updates one element. v[i] is of input i.
template <class T, class Step, class Numbers>
void run_step(const Step& step, const Numbers& numbers, Compute<T>* v) {
  if constexpr (kHasMaster<Step>) {
    step.run(numbers, v, [](float x) { return static_cast<float>(T(x)); });
  } else {
    step.run(numbers, v);
  }
}

// The step and its numbers are copies, so the compiler knows that no store changes them.
template <class Step, class T, class Numbers, size_t... kInput, class... Slots>
void run_slots(const Step step, const Numbers numbers, int64_t n,
               std::index_sequence<kInput...> /*inputs*/, Slots... slots) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Compute<T> v[] = {static_cast<Compute<T>>(slots.in[i * slots.stride])...};
    run_step<T>(step, numbers, v);
    ((is_written<Step>(kInput)
          ? void(slots.out[i * slots.stride] = static_cast<typename Slots::Element>(v[kInput]))
          : void()),
     ...);
  }
}

template <class T, class Step, class Numbers, bool kIsFlat, size_t... kInput>
void run_stretch(const Step& step, const Numbers& numbers, const Stretch<Step, T, kIsFlat>& s,
                 int64_t n, std::index_sequence<kInput...> inputs) {
  run_slots<Step, T>(step, numbers, n, inputs, s.template slot<kInput>()...);
}

// All threads have read the parameter since the last step, so its lines are prefetched for writing.
template <class Step, class T>
void run_flat(const KernelContext& ctx, const Step& step,
              const typename Step::template Numbers<Compute<T>>& numbers, int64_t begin,
              int64_t n) {
  constexpr int64_t kBlock = 256;
  constexpr int64_t kLine = 64 / sizeof(T);
  constexpr int64_t kAhead = kStoreAheadBytes / sizeof(T);
  const auto& state = ctx.state_as<LoopNest>();
  const T* param = ctx.out(0).as<T>() + begin;
  for (int64_t i = 0; i < n; i += kBlock) {
    for (int64_t line = i + kAhead; line < std::min(i + kAhead + kBlock, n); line += kLine)
      prefetch_for_store(param + line);
    LoopNest::Offsets offsets;
    offsets.fill(begin + i);
    run_stretch(step, numbers, Stretch<Step, T, true>{ctx, state, offsets}, std::min(kBlock, n - i),
                std::make_index_sequence<Step::kTensors>());
  }
}

// The number of elements for which a thread is worthwhile. It is small because roots and divisions
// cost more than the operations of most loops.
constexpr int64_t kUpdateGrain = 4096;

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  const Step step(ctx);
  const auto numbers = step.template numbers<Compute<T>>();
  if (state.is_flat()) {
    ctx.pool().parallel_for(0, state.inner, kUpdateGrain, [&](int64_t begin, int64_t end) {
      run_flat<Step, T>(ctx, step, numbers, begin, end - begin);
    });
    return;
  }
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    run_stretch(step, numbers, Stretch<Step, T, false>{ctx, state, offsets}, n,
                std::make_index_sequence<Step::kTensors>());
  });
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
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(op, DeviceType::kCpu, {name, select_update<Step>});
}

#include "ops/kernel/isa_end.h"
