// What steps of optimizers share: a rule over one parameter and its state, in one pass. State is
// read from the inputs and written to the outputs, which are the same memory in eager mode and lie
// alike elsewhere.
//
//   struct Rule {
//     static constexpr int kTensors = 3;     // inputs of the parameter's shape; numbers follow
//     template <class T> struct Numbers { explicit Numbers(const KernelContext& ctx); };
//     template <class T, class S>            // n elements of a stretch
//     static void run(const Numbers<T>& numbers, const S& s, int64_t n);
//   };
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/elementwise/elementwise_loops.h"

#include "ops/kernel/isa_begin.h"

// Input `i` if it was given, else `fallback`.
inline double number_or(const KernelContext& ctx, int i, double fallback) {
  if (!ctx.has_input(i)) return fallback;
  const TensorView& view = ctx.in(i);
  return view.meta->dtype == DType::kFloat64 ? *view.as<double>() : double{*view.as<float>()};
}

// One element of input `kInput`, widened.
template <class T>
struct Reader {
  const T* data;
  int64_t stride;

  Compute<T> operator[](int64_t i) const { return static_cast<Compute<T>>(data[i * stride]); }
};

template <class T>
struct Writer {
  T* data;
  int64_t stride;

  void set(int64_t i, Compute<T> value) const { data[i * stride] = static_cast<T>(value); }
};

// Where a stretch of the loop begins in each tensor; operand 1 of the plan is input 0. A stride of
// 1 is known to the compiler in the flat case.
template <class T, bool kIsFlat>
struct Stretch {
  const KernelContext& ctx;
  const LoopNest& state;
  const LoopNest::Offsets& offsets;

  Reader<T> in(int i) const {
    const size_t operand = static_cast<size_t>(i) + 1;
    return {ctx.in(i).as<T>() + offsets[operand], kIsFlat ? 1 : state.inner_stride()[operand]};
  }

  // Output `o`, which lies as input `i`.
  Writer<T> out(int o, int i) const {
    const size_t operand = static_cast<size_t>(i) + 1;
    return {ctx.out(o).as<T>() + offsets[operand], kIsFlat ? 1 : state.inner_stride()[operand]};
  }
};

// The parameter was read by all threads since the last step, so its lines are fetched for writing.
template <class Step, class T>
void run_flat(const KernelContext& ctx, const typename Step::template Numbers<T>& numbers,
              int64_t begin, int64_t n) {
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
    Step::template run<T>(numbers, Stretch<T, true>{ctx, state, offsets}, std::min(kBlock, n - i));
  }
}

// Elements worth a thread: roots and divisions make them dearer than those of most loops.
constexpr int64_t kUpdateGrain = 4096;

template <class Step, class T>
void run_update(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  const typename Step::template Numbers<T> numbers(ctx);
  if (state.is_flat()) {
    ctx.pool().parallel_for(0, state.inner, kUpdateGrain, [&](int64_t begin, int64_t end) {
      run_flat<Step, T>(ctx, numbers, begin, end - begin);
    });
    return;
  }
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    Step::template run<T>(numbers, Stretch<T, false>{ctx, state, offsets}, n);
  });
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
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(op, DeviceType::kCpu, {name, select_update<Step>});
}

#include "ops/kernel/isa_end.h"
