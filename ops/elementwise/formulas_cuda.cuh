// Chooses elementwise CUDA kernels by dtype. A formula is a template F<C> over the type C in which
// it computes. It is made from a call's attrs and copied to the device:
//   explicit F(const void* attrs);  __device__ auto operator()(C x, ...) const;
#pragma once

#include <tuple>
#include <type_traits>

#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/elementwise/elementwise_formulas.h"

namespace flow::ops {

enum class Elements { kAll, kNumeric, kInteger, kFloating };

// Integers include bools.
template <Elements kElements, class T>
constexpr bool is_among() {
  switch (kElements) {
    case Elements::kAll:
      return true;
    case Elements::kNumeric:
      return !std::is_same_v<T, bool>;
    case Elements::kInteger:
      return !is_floating(dtype_of<T>);
    case Elements::kFloating:
      break;
  }
  return is_floating(dtype_of<T>);
}

template <template <class> class F, class Y, class... X>
void run_formula(const KernelContext& ctx) {
  using C = DeviceCompute<std::tuple_element_t<0, std::tuple<X...>>>;
  run_elementwise<Y, X...>(ctx, F<C>(ctx.attrs));
}

// Takes `kInputs` inputs of one dtype; the output has that dtype or is bool.
template <template <class> class F, Elements kElements, int kInputs, bool kGivesBools = false>
KernelChoice choose_formula(const KernelQuery& query) {
  KernelFn fn = nullptr;
  dispatch_all(query.input(0).dtype, [&]<class T>() {
    using Y = std::conditional_t<kGivesBools, bool, T>;
    if constexpr (is_among<kElements, T>()) {
      if constexpr (kInputs == 1) {
        fn = run_formula<F, Y, T>;
      } else if constexpr (kInputs == 2) {
        fn = run_formula<F, Y, T, T>;
      } else {
        fn = run_formula<F, Y, T, T, T>;
      }
    }
  });
  return choose_elementwise(query, fn);
}

template <template <class> class F, Elements kElements, int kInputs, bool kGivesBools = false>
void add_formula(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", choose_formula<F, kElements, kInputs, kGivesBools>});
}

}  // namespace flow::ops
