// CUDA kernels of the rows of ops/elementwise/unary_rows.h.
#pragma once

#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/unary_rows.h"

namespace flow::ops {

template <class Row>
void add_row(KernelTable& table) {
  constexpr UnaryFacts kFacts = Row::kFacts;
  constexpr Elements kElements = kFacts.takes == Takes::kAll       ? Elements::kAll
                                 : kFacts.takes == Takes::kNumbers ? Elements::kNumeric
                                                                   : Elements::kFloating;
  add_formula<Applied<Row>::template Of, kElements, 1, kFacts.gives_bools>(table, op_of<Row>());
}

template <class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (add_row<Row>(table), ...);
}

}  // namespace flow::ops
