// Elementwise kernels from formulas: which loop runs over which operands. Include it with the other
// headers, before ops/isa_begin.h; all names live in flow::ops::isa_*.
//
// A formula has one member template: make<C>(attrs) gives the function of one element, taken and
// returned as C: the operands' type, or float for the 16-bit ones. A vector formula's takes and
// returns Vec<C>, a predicate's result is bool.
//
//   add_reference<F, Types::kAll, 2>(table, op)  one element at a time, any strides and dtypes
//   add_loops<F, Y, X...>(table, op)             loops the compiler vectorises
//   add_vectors<F, Y, X...>(table, op)           loops over Vec
//
// The last two are for outputs of type Y and inputs of types X...; others fall through.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/dtype.h"
#include "core/kernel.h"
#include "ops/strided_loop.h"
#include "ops/vector.h"

#include "ops/isa_begin.h"

// The type elements of type T are computed in.
template <class T>
using Compute = std::conditional_t<sizeof(T) == 2, float, T>;

// What a formula is made for: the output's type, a predicate's first input.
template <class Y, class... X>
using FormulaType = Compute<
    std::conditional_t<std::is_same_v<Y, bool>, std::tuple_element_t<0, std::tuple<X...>>, Y>>;

// Strided operands are copied to and from buffers of this many elements, which stay in L1.
inline constexpr int64_t kBlock = 512;

// Outputs from this size on go past the caches: they would push out everything else, and a plain
// store reads the line before it writes it.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

// ---- what happens to n elements at stride 1

template <class F>
struct LoopBlock {
  template <class Y, class... X>
  static void run(const void* attrs, Y* y, int64_t n, const X*... x) {
    const auto f = F::template make<FormulaType<Y, X...>>(attrs);
    // An input may be the output itself; it is never a shifted view of it.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<Y>(f(static_cast<Compute<X>>(x[i])...));
  }

  template <class Y, class... X>
  static void run_streaming(const void* attrs, Y* y, int64_t n, const X*... x) {
    run(attrs, y, n, x...);
  }
};

template <class F>
struct VectorBlock {
  template <class Y, class... X>
  static void run(const void* attrs, Y* y, int64_t n, const X*... x) {
    map(y, n, F::template make<Compute<Y>>(attrs), x...);
  }

  template <class Y, class... X>
  static void run_streaming(const void* attrs, Y* y, int64_t n, const X*... x) {
    if constexpr (sizeof(Y) == 2) {
      run(attrs, y, n, x...);
    } else {
      map_stream(y, n, F::template make<Y>(attrs), x...);
    }
  }
};

// ---- walking the operands

// `x` itself at stride 1, else its n elements in `buffer`.
template <class T>
const T* gather(const T* x, int64_t stride, int64_t n, T* buffer) {
  if (stride == 1) return x;
  if (stride == 0) {
    std::fill_n(buffer, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i)
      buffer[i] = x[i * stride];
  }
  return buffer;
}

template <class Block, class Y, class... X, size_t... kInput>
void run_stretch(const KernelContext& ctx, const LoopPlan& plan, const LoopPlan::Offsets& offsets,
                 int64_t n, std::index_sequence<kInput...> /*inputs*/) {
  const LoopPlan::Offsets& stride = plan.inner_stride();
  Y* y = ctx.out(0).as<Y>() + offsets[0];
  const std::tuple<const X*...> x{
      (ctx.in(static_cast<int>(kInput)).template as<X>() + offsets[kInput + 1])...};
  const bool is_flat = ((stride[kInput + 1] == 1) && ... && (stride[0] == 1));
  if (is_flat) {
    Block::run(ctx.attrs, y, n, std::get<kInput>(x)...);
    return;
  }
  // Uninitialised on purpose: rows may be short.
  alignas(64) std::array<std::byte, kBlock * sizeof(Y)> y_bytes;
  alignas(64) std::array<std::array<std::byte, kBlock * 8>, sizeof...(X)> x_bytes;
  Y* y_buffer = reinterpret_cast<Y*>(y_bytes.data());
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    Y* target = stride[0] == 1 ? y + i : y_buffer;
    Block::run(ctx.attrs, target, count,
               gather(std::get<kInput>(x) + i * stride[kInput + 1], stride[kInput + 1], count,
                      reinterpret_cast<X*>(x_bytes[kInput].data()))...);
    if (stride[0] == 1) continue;
    for (int64_t j = 0; j < count; ++j)
      y[(i + j) * stride[0]] = y_buffer[j];
  }
}

// The plan is a LoopPlan.
template <class Block, class Y, class... X>
void run_strided(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<LoopPlan>();
  parallel_stretches(ctx.pool(), plan, [&](const LoopPlan::Offsets& offsets, int64_t n) {
    run_stretch<Block, Y, X...>(ctx, plan, offsets, n, std::index_sequence_for<X...>());
  });
}

// All operands contiguous and of one shape: no plan.
template <class Block, class Y, class... X, size_t... kInput>
void run_flat_inputs(const KernelContext& ctx, std::index_sequence<kInput...> /*inputs*/) {
  const int64_t n = ctx.out(0).numel();
  Y* y = ctx.out(0).as<Y>();
  if (n <= kElementwiseGrain) {
    Block::run(ctx.attrs, y, n, ctx.in(static_cast<int>(kInput)).template as<X>()...);
    return;
  }
  const bool is_in_place = ((ctx.in(static_cast<int>(kInput)).data == ctx.out(0).data) || ...);
  const bool streams = n * static_cast<int64_t>(sizeof(Y)) >= kStreamBytes && !is_in_place;
  ctx.pool().parallel_for(0, n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    if (streams) {
      Block::run_streaming(ctx.attrs, y + begin, end - begin,
                           (ctx.in(static_cast<int>(kInput)).template as<X>() + begin)...);
    } else {
      Block::run(ctx.attrs, y + begin, end - begin,
                 (ctx.in(static_cast<int>(kInput)).template as<X>() + begin)...);
    }
  });
}

template <class Block, class Y, class... X>
void run_flat(const KernelContext& ctx) {
  run_flat_inputs<Block, Y, X...>(ctx, std::index_sequence_for<X...>());
}

// ---- the reference: any strides, one element at a time

template <class F, class Y, class... X, size_t... kInput>
void run_reference_inputs(const KernelContext& ctx, std::index_sequence<kInput...> /*inputs*/) {
  const auto& plan = ctx.plan_as<LoopPlan>();
  const LoopPlan::Offsets& stride = plan.inner_stride();
  const auto f = F::template make<FormulaType<Y, X...>>(ctx.attrs);
  for_rows(plan, 0, plan.rows, [&](const LoopPlan::Offsets& offsets) {
    Y* y = ctx.out(0).as<Y>() + offsets[0];
    for (int64_t i = 0; i < plan.inner; ++i) {
      y[i * stride[0]] = static_cast<Y>(f(static_cast<Compute<X>>(
          (ctx.in(static_cast<int>(kInput))
               .template as<X>())[offsets[kInput + 1] + i * stride[kInput + 1]])...));
    }
  });
}

template <class F, class Y, class... X>
void run_reference(const KernelContext& ctx) {
  run_reference_inputs<F, Y, X...>(ctx, std::index_sequence_for<X...>());
}

enum class Types { kAll, kNumeric, kFloating };

template <Types kTypes, class T>
inline constexpr bool kAccepts = kTypes == Types::kAll ||
                                 (kTypes == Types::kNumeric ? !std::is_same_v<T, bool>
                                                            : is_floating(dtype_of<T>));

template <class T, size_t kInput>
using Repeated = T;

template <class F, class Y, class T, size_t... kInput>
KernelFn reference_fn(std::index_sequence<kInput...> /*inputs*/) {
  return run_reference<F, Y, Repeated<T, kInput>...>;
}

// All inputs are of one dtype, which is the output's too unless that is bool.
template <class F, Types kTypes, bool kIsPredicate, size_t kInputs>
KernelChoice select_reference(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_all(query.input(0).dtype, [&]<class T>() {
    using Y = std::conditional_t<kIsPredicate, bool, T>;
    if constexpr (kAccepts<kTypes, T>) {
      choice.fn = reference_fn<F, Y, T>(std::make_index_sequence<kInputs>());
    }
  });
  choice.plan = share_loop_plan(query.output(0), query.inputs.first(kInputs));
  return choice;
}

// ---- choosing and registering

template <class Block, class Y, class... X>
KernelChoice select_elementwise(const KernelQuery& query) {
  const std::array<DType, sizeof...(X)> wanted{dtype_of<X>...};
  const TensorMeta& output = query.output(0);
  if (output.dtype != dtype_of<Y>) return {};
  bool is_flat = output.is_contiguous;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const TensorMeta& input = *query.inputs[i];
    if (input.dtype != wanted[i]) return {};
    is_flat = is_flat && input.is_contiguous && input.local_shape == output.local_shape;
  }
  if (is_flat) return {run_flat<Block, Y, X...>};
  return {run_strided<Block, Y, X...>, share_loop_plan(output, query.inputs.first(sizeof...(X)))};
}

template <class F, Types kTypes, size_t kInputs>
void add_reference(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {"reference", select_reference<F, kTypes, false, kInputs>});
}

// y = f(x...) as bool.
template <class F, Types kTypes, size_t kInputs>
void add_reference_predicate(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {"reference", select_reference<F, kTypes, true, kInputs>});
}

template <class F, class Y, class... X>
void add_loops(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_elementwise<LoopBlock<F>, Y, X...>});
}

template <class F, class Y, class... X>
void add_vectors(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_elementwise<VectorBlock<F>, Y, X...>});
}

// y = f(x) over float, double and the 16-bit types.
template <class F>
void add_floating_unary(KernelTable& table, const OpDef& op) {
  add_vectors<F, Float16, Float16>(table, op);
  add_vectors<F, BFloat16, BFloat16>(table, op);
  add_vectors<F, double, double>(table, op);
  add_vectors<F, float, float>(table, op);
}

// y = f(a, b) over float, double and the 16-bit types.
template <class F>
void add_floating_binary(KernelTable& table, const OpDef& op) {
  add_vectors<F, Float16, Float16, Float16>(table, op);
  add_vectors<F, BFloat16, BFloat16, BFloat16>(table, op);
  add_vectors<F, double, double, double>(table, op);
  add_vectors<F, float, float, float>(table, op);
}

#include "ops/isa_end.h"
