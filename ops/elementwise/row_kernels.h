// CPU kernels of the rows of ops/elementwise/row_table.h. Include it after the other headers and
// before ops/kernel/isa_begin.h; all names are in flow::ops::isa_*.
//
//   struct VectorForms {
//     static auto of(Neg, auto x) { return -x; }   // the vector form of a row, for Vec<C> x
//     static auto of(MulNumber, auto x, auto c) { return x * c; }   // a number comes last
//   };
//   add_rows<VectorForms>(table, BasicRows());
//
// Each row has a reference kernel and the loops that its facts name; floats take the vector form if
// there is one.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/row_table.h"

#include "ops/kernel/isa_begin.h"

struct NoVectorForms {};

template <class Forms, class Row>
struct VectorForm {
  template <class C>
  static auto make([[maybe_unused]] const void* attrs) {
    if constexpr (HasNumber<Row>) {
      const auto& row_attrs = *static_cast<const typename Row::Attrs*>(attrs);
      const auto number = Vec<C>::fill(row_attrs.template number<C>());
      return [number](auto... x) { return Forms::of(Row(), x..., number); };
    } else {
      return [](auto... x) { return Forms::of(Row(), x...); };
    }
  }
};

template <class Forms, class Row, size_t... kOperand>
constexpr bool has_vector_form(std::index_sequence<kOperand...> /*operands*/) {
  return requires(Repeated<Vec<float>, kOperand>... x) {
    Forms::of(Row(), x...);
  };
}

template <class Row>
inline constexpr auto kInputsOf = static_cast<size_t>(Row::kFacts.inputs());

template <class Forms, class Row>
inline constexpr bool kHasVectorForm = has_vector_form<Forms, Row>(
    std::make_index_sequence<kInputsOf<Row> + (HasNumber<Row> ? 1 : 0)>());

// ---- the types of operands: masks are bool, all others T

template <class Row, class T>
using OutputOf = std::conditional_t<Row::kFacts.gives_bools, bool, T>;

template <class Row, class T, size_t kInput>
using InputOf = std::conditional_t<(Row::kFacts.masks >> kInput & 1U) != 0, bool, T>;

// Calls add.operator()<Y, X...>() with the types of the operands.
template <class Row, class T, class Add, size_t... kInput>
auto with_operands(const Add& add, std::index_sequence<kInput...> /*inputs*/) {
  return add.template operator()<OutputOf<Row, T>, InputOf<Row, T, kInput>...>();
}

template <class Row, class T, class Add>
auto with_operands(const Add& add) {
  return with_operands<Row, T>(add, std::make_index_sequence<kInputsOf<Row>>());
}

template <class Row>
using RowLoop = OfAttrs<RowFormula<Row>::template Of>;

// ---- kernels

template <class Row>
constexpr Types reference_types() {
  switch (Row::kFacts.takes) {
    case Takes::kAll:
      return Types::kAll;
    case Takes::kNumbers:
    case Takes::kBoolsPromoted:
      return Types::kNumeric;
    case Takes::kBits:
    case Takes::kIntegers:
      return Types::kInteger;
    case Takes::kFloats:
    case Takes::kPromoted:
    case Takes::kPromotedNumbers:
      break;
  }
  return Types::kFloating;
}

template <class Row>
KernelChoice select_row_reference(const KernelQuery& query) {
  constexpr int kTyped = (Row::kFacts.masks & 1U) != 0 ? 1 : 0;
  RowFn row = nullptr;
  dispatch_all(query.input(kTyped).dtype, [&]<class T>() {
    if constexpr (kAccepts<reference_types<Row>(), T>) {
      row = with_operands<Row, T>(
          []<class Y, class... X>() -> RowFn { return Reference<RowLoop<Row>, Y, X...>::row; });
    }
  });
  if (row == nullptr) return {};
  return choose_rows(query, row);
}

template <class Row, class T, uint32_t kLoop>
void add_row_loop(KernelTable& table) {
  if constexpr ((Row::kFacts.loops & kLoop) != 0) {
    with_operands<Row, T>(
        [&]<class Y, class... X>() { add_loops<RowLoop<Row>, Y, X...>(table, op_of<Row>()); });
  }
}

template <class Form, class Row, class T>
void add_row_vectors(KernelTable& table) {
  with_operands<Row, T>(
      [&]<class Y, class... X>() { add_vectors<Form, Y, X...>(table, op_of<Row>()); });
}

template <class Forms, class Row>
void add_row(KernelTable& table) {
  if constexpr (FLOW_ISA == 0) {
    table.add(op_of<Row>(), DeviceType::kCpu, {"reference", select_row_reference<Row>});
  }
  if constexpr (FLOW_ISA == 0 || (Row::kFacts.loops & kLoopBaseline) == 0) {
    add_row_loop<Row, bool, kLoopBool>(table);
    add_row_loop<Row, int32_t, kLoopInt32>(table);
    add_row_loop<Row, int64_t, kLoopInt64>(table);
    if constexpr (!kHasVectorForm<Forms, Row>) {
      add_row_loop<Row, double, kLoopFloat64>(table);
      add_row_loop<Row, float, kLoopFloat32>(table);
    }
  }
  if constexpr (kHasVectorForm<Forms, Row>) {
    using Form = VectorForm<Forms, Row>;
    add_row_vectors<Form, Row, Float16>(table);
    add_row_vectors<Form, Row, BFloat16>(table);
    add_row_vectors<Form, Row, double>(table);
    add_row_vectors<Form, Row, float>(table);
  }
}

template <class Forms, class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (add_row<Forms, Row>(table), ...);
}

#include "ops/kernel/isa_end.h"
