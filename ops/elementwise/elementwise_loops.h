// Elementwise kernels made from formulas: chooses the loop for the operands. Include it after the
// other headers and before ops/kernel/isa_begin.h; all names are in flow::ops::isa_*.
//
// A formula has one member template: make<C>(attrs) returns the function of one element. It takes
// and returns C, which is the type of the operands, or float for the 16-bit types. The function of
// a vector formula takes and returns Vec<C>; a predicate returns bool.
//
//   add_reference<F, Types::kAll, 2>(table, op)  one element at a time, any strides and dtypes
//   add_loops<F, Y, X...>(table, op)             loops the compiler vectorises
//   add_vectors<F, Y, X...>(table, op)           loops over Vec
//   add_kernel<Block, Y, X...>(table, op)        Block::run(attrs, y, n, x...), and optionally
//                                                run_streaming, which stores past the caches, and
//                                                run_repeated<i>, for one value of input i of two
//
// The last three serve outputs of type Y and inputs of types X...; other calls get the next kernel.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/dtype.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/elementwise/elementwise_run.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

// The type in which elements of type T are computed.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

// The type that a formula is made for: that of the output or, for a predicate, of the first input.
template <class Y, class... X>
using FormulaType = Compute<
    std::conditional_t<std::is_same_v<Y, bool>, std::tuple_element_t<0, std::tuple<X...>>, Y>>;

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
};

// The hardware prefetches the inputs, which are read in order. The lines of y, often new memory,
// would only be fetched by the stores.
constexpr int64_t kStoreAheadBytes = 1024;

// Fetches a line for writing, so that other cores that have read it give it up before the store
// needs it. Each such line costs the store 30 ns, and stores wait for each other.
inline void prefetch_for_store(const void* line) {
#if FLOW_ISA > 0
  // __builtin_prefetch emits a prefetch for loads if the target does not support prfchw.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Without other threads the stores fetch the lines as fast, and prefetches take a fifth of the time
// of a loop over memory in a cache.
template <class Y, class F, class... X>
inline void map_ahead(Y* y, int64_t n, F f, const X*... x) {
  const bool is_shared = has_worker_threads();
  constexpr int64_t kTurn = 2 * VecOf<Y>::kLanes;
  constexpr int64_t kLine = 64 / sizeof(Y);
  int64_t i = 0;
  for (; i + kTurn <= n; i += kTurn) {
    if (is_shared) {
#pragma GCC unroll 4
      for (int64_t line = 0; line < kTurn; line += kLine)
        prefetch_for_store(y + i + line + kStoreAheadBytes / static_cast<int64_t>(sizeof(Y)));
    }
    map(y + i, kTurn, f, (x + i)...);
  }
  map(y + i, n - i, f, (x + i)...);
}

// The formula is inlined, whatever its size: a call for each vector would load its constants again
// and could not overlap with the next one.
template <class F>
struct VectorBlock {
  template <class Y, class... X>
  [[gnu::flatten]] static void run(const void* attrs, Y* y, int64_t n, const X*... x) {
    map_ahead(y, n, F::template make<Compute<Y>>(attrs), x...);
  }

  template <class Y, class... X>

  requires(sizeof(Y) > 2) [[gnu::flatten]] static void run_streaming(const void* attrs, Y* y,
                                                                     int64_t n, const X*... x) {
    map_stream(y, n, F::template make<Y>(attrs), x...);
  }

  // The repeated value stays in a register.
  template <int kRepeated, class T>
  static void run_repeated(const void* attrs, T* y, int64_t n, const T* a, const T* b) {
    const auto f = F::template make<Compute<T>>(attrs);
    using V = VecOf<T>;
    const V value = V::fill(static_cast<Compute<T>>(kRepeated == 0 ? *a : *b));
    const auto with_value = [&f, value](V x) { return kRepeated == 0 ? f(value, x) : f(x, value); };
    map_ahead(y, n, with_value, kRepeated == 0 ? b : a);
  }
};

// A block as a kernel, and as functions of untyped memory.
template <class Block, class Y, class... X>
struct Kernel {
  template <size_t... kInput>
  static void run_block(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x,
                        std::index_sequence<kInput...> /*inputs*/) {
    Block::run(attrs, reinterpret_cast<Y*>(y), n, reinterpret_cast<const X*>(x[kInput])...);
  }

  template <size_t... kInput>
  static void run_streaming(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x,
                            std::index_sequence<kInput...> /*inputs*/) {
    if constexpr (requires { &Block::template run_streaming<Y, X...>; }) {
      Block::run_streaming(attrs, reinterpret_cast<Y*>(y), n,
                           reinterpret_cast<const X*>(x[kInput])...);
    } else {
      Block::run(attrs, reinterpret_cast<Y*>(y), n, reinterpret_cast<const X*>(x[kInput])...);
    }
  }

  static void block(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x) {
    run_block(attrs, y, n, x, std::index_sequence_for<X...>());
  }

  static void streaming(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x) {
    run_streaming(attrs, y, n, x, std::index_sequence_for<X...>());
  }

  template <int kRepeated>
  static void repeated(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x) {
    Block::template run_repeated<kRepeated>(attrs, reinterpret_cast<Y*>(y), n,
                                            reinterpret_cast<const Y*>(x[0]),
                                            reinterpret_cast<const Y*>(x[1]));
  }

  static constexpr RepeatedBlocks repeated_blocks() {
    constexpr bool kIsBinary = sizeof...(X) == 2 && (std::is_same_v<X, Y> && ...);
    if constexpr (kIsBinary && requires { &Block::template run_repeated<0, Y>; }) {
      return {repeated<0>, repeated<1>};
    } else {
      return {};
    }
  }

  // Few elements: straight to the block.
  static void dense(const KernelContext& ctx) {
    const int64_t n = ctx.out(0).numel();
    if (n > kElementwiseGrain) {
      run_dense(ctx, block, streaming);
      return;
    }
    std::array<const std::byte*, sizeof...(X)> x;
    for (size_t i = 0; i < sizeof...(X); ++i)
      x[i] = ctx.inputs[i].data;
    block(ctx.attrs, ctx.out(0).data, n, x.data());
  }
};

template <class Block, class Y, class... X>
KernelChoice select_elementwise(const KernelQuery& query) {
  const std::array<DType, sizeof...(X)> wanted{dtype_of<X>...};
  if (query.output(0).dtype != dtype_of<Y>) return {};
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (query.inputs[i]->dtype != wanted[i]) return {};
  }
  using Functions = Kernel<Block, Y, X...>;
  if (has_blocked_input(query)) return choose_blocked(query, Functions::block);
  if (is_dense(query)) return {Functions::dense};
  return choose_strided(query, Functions::block, Functions::repeated_blocks());
}

// ---- the reference: any strides, one element at a time

template <class F, class Y, class... X>
struct Reference {
  template <size_t... kInput>
  static void run(const void* attrs, Y* y, int64_t n, const std::byte* const* x,
                  const int64_t* stride, std::index_sequence<kInput...> /*inputs*/) {
    const auto f = F::template make<FormulaType<Y, X...>>(attrs);
    for (int64_t i = 0; i < n; ++i) {
      y[i * stride[0]] = static_cast<Y>(f(static_cast<Compute<X>>(
          reinterpret_cast<const X*>(x[kInput])[i * stride[kInput + 1]])...));
    }
  }

  static void row(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x,
                  const int64_t* stride) {
    run(attrs, reinterpret_cast<Y*>(y), n, x, stride, std::index_sequence_for<X...>());
  }
};

// Integers include bools.
enum class Types { kAll, kNumeric, kInteger, kFloating };

template <Types kTypes, class T>
inline constexpr bool kAccepts = kTypes == Types::kAll ||
                                 (kTypes == Types::kNumeric   ? !std::is_same_v<T, bool>
                                  : kTypes == Types::kInteger ? !is_floating(dtype_of<T>)
                                                              : is_floating(dtype_of<T>));

template <class T, size_t kInput>
using Repeated = T;

template <class F, class Y, class T, size_t... kInput>
RowFn reference_row(std::index_sequence<kInput...> /*inputs*/) {
  return Reference<F, Y, Repeated<T, kInput>...>::row;
}

// All inputs and the output have one dtype.
template <class F, Types kTypes, size_t kInputs>
KernelChoice select_reference(const KernelQuery& query) {
  RowFn row = nullptr;
  dispatch_all(query.input(0).dtype, [&]<class T>() {
    if constexpr (kAccepts<kTypes, T>) {
      row = reference_row<F, T, T>(std::make_index_sequence<kInputs>());
    }
  });
  if (row == nullptr) return {};
  return choose_rows(query, row);
}

// ---- registering

template <class F, Types kTypes, size_t kInputs>
void add_reference(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {"reference", select_reference<F, kTypes, kInputs>});
}

template <class Block, class Y, class... X>
void add_kernel(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_elementwise<Block, Y, X...>, true});
}

template <class F, class Y, class... X>
void add_loops(KernelTable& table, const OpDef& op) {
  add_kernel<LoopBlock<F>, Y, X...>(table, op);
}

template <class F, class Y, class... X>
void add_vectors(KernelTable& table, const OpDef& op) {
  add_kernel<VectorBlock<F>, Y, X...>(table, op);
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

#include "ops/kernel/isa_end.h"
