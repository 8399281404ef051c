// CUDA kernels of the rows of ops/elementwise/row_table.h.
#pragma once

#include <type_traits>
#include <utility>

#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/row_table.h"

namespace flow::ops {

// A row whose quotient of integers by zero is 0: a kernel cannot raise an error.
template <class Row>
struct Guarded : Row {
  template <class C>
  __device__ static C apply(C a, C b) {
    if constexpr (std::is_integral_v<C>) {
      if (b == C{0}) return C{0};
    }
    return Row::apply(a, b);
  }
};

template <class Row>
using DeviceRow = std::conditional_t<Row::kFacts.refuses_zero, Guarded<Row>, Row>;

template <class Row>
constexpr Elements elements_of() {
  switch (Row::kFacts.takes) {
    case Takes::kAll:
      return Elements::kAll;
    case Takes::kNumbers:
    case Takes::kBoolsPromoted:
      return Elements::kNumeric;
    case Takes::kBits:
    case Takes::kIntegers:
      return Elements::kInteger;
    case Takes::kFloats:
    case Takes::kPromoted:
    case Takes::kPromotedNumbers:
      break;
  }
  return Elements::kFloating;
}

// The inputs are of type T except for masks, which are bool.
template <class Row, class T, size_t... kInput>
void run_row(const KernelContext& ctx, std::index_sequence<kInput...> /*inputs*/) {
  using Y = std::conditional_t<Row::kFacts.gives_bools, bool, T>;
  using Formula = typename RowFormula<DeviceRow<Row>>::template Of<DeviceCompute<T>>;
  run_elementwise<Y, std::conditional_t<(Row::kFacts.masks >> kInput & 1U) != 0, bool, T>...>(
      ctx, Formula(ctx.attrs));
}

template <class Row, class T>
void run_row(const KernelContext& ctx) {
  run_row<Row, T>(ctx, std::make_index_sequence<static_cast<size_t>(Row::kFacts.inputs())>());
}

template <class Row>
KernelChoice choose_row(const KernelQuery& query) {
  constexpr int kTyped = (Row::kFacts.masks & 1U) != 0 ? 1 : 0;
  KernelFn fn = nullptr;
  dispatch_all(query.input(kTyped).dtype, [&]<class T>() {
    if constexpr (is_among<elements_of<Row>(), T>()) fn = run_row<Row, T>;
  });
  return choose_elementwise(query, fn);
}

template <class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (table.add(op_of<Row>(), DeviceType::kCuda, {"cuda", choose_row<Row>}), ...);
}

}  // namespace flow::ops
