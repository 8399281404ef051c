// CPU kernels of the rows of ops/elementwise/unary_rows.h. Include it after the other headers and
// before ops/kernel/isa_begin.h; all names are in flow::ops::isa_*.
//
//   struct VectorForms {
//     static auto of(Neg, auto x) { return -x; }   // the vector form of a row, for Vec<C> x
//   };
//   add_rows<VectorForms>(table, BasicRows());
//
// A row without a vector form computes one element at a time in the baseline, with the functions of
// the C library. The compiler vectorises the loops of predicates for every instruction set.
#pragma once

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/unary_rows.h"

#include "ops/kernel/isa_begin.h"

struct NoVectorForms {};

template <class Forms, class Row>
struct VectorForm {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](Vec<C> x) { return Forms::of(Row(), x); };
  }
};

template <class Forms, class Row>
inline constexpr bool kHasVectorForm = requires(Vec<float> x) {
  Forms::of(Row(), x);
};

template <class Row>
void add_row_reference(KernelTable& table) {
  constexpr UnaryFacts kFacts = Row::kFacts;
  if constexpr (kFacts.gives_bools) {
    add_reference_predicate<OfTensor<Row>, Types::kAll, 1>(table, op_of<Row>());
  } else {
    constexpr Types kTypes = kFacts.takes == Takes::kAll       ? Types::kAll
                             : kFacts.takes == Takes::kNumbers ? Types::kNumeric
                                                               : Types::kFloating;
    add_reference<OfTensor<Row>, kTypes, 1>(table, op_of<Row>());
  }
}

template <class Forms, class Row>
void add_row(KernelTable& table) {
  if constexpr (FLOW_ISA == 0) add_row_reference<Row>(table);
  if constexpr (kHasVectorForm<Forms, Row>) {
    add_floating_unary<VectorForm<Forms, Row>>(table, op_of<Row>());
  } else if constexpr (Row::kFacts.gives_bools) {
    add_loops<OfTensor<Row>, bool, double>(table, op_of<Row>());
    add_loops<OfTensor<Row>, bool, float>(table, op_of<Row>());
  } else if constexpr (FLOW_ISA == 0) {
    add_loops<OfTensor<Row>, double, double>(table, op_of<Row>());
    add_loops<OfTensor<Row>, float, float>(table, op_of<Row>());
  }
}

template <class Forms, class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (add_row<Forms, Row>(table), ...);
}

#include "ops/kernel/isa_end.h"
