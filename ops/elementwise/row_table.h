// The table of elementwise functions. A row is a struct with facts, a formula and a gradient; rows
// of one tensor are in ops/elementwise/unary_rows.h, of two in arithmetic_rows.h and
// compare_rows.h, of three in ternary_rows.h, and special functions in special/rows.h. Iterating
// over the table gives each row its op (row_table.cpp), its kernels on the CPU (row_kernels.h) and
// on CUDA devices (rows_cuda.cuh) and, except for rows of three tensors, its samples of the
// contract test and its binding in flow-conform.
#pragma once

#include <array>

#include "ops/elementwise/arithmetic_rows.h"
#include "ops/elementwise/compare_rows.h"
#include "ops/elementwise/rows.h"
#include "ops/elementwise/special/rows.h"
#include "ops/elementwise/ternary_rows.h"
#include "ops/elementwise/unary_rows.h"

namespace flow::ops {

using TableRows = decltype(join(UnaryRows(), ArithmeticRows(), CompareRows(), BitRows(),
                                TernaryRows(), ChoiceRows(), SpecialRows()));

// The ops, in the order of the list.
extern const std::array<OpDef, TableRows::kSize> kTableOps;

template <class Row>
constexpr const OpDef& op_of() {
  return kTableOps[position_of<Row>(TableRows())];
}

// Adds the ops of some rows.
template <class... Row>
void add_ops(OpTable& table, Rows<Row...> /*rows*/) {
  (table.add(op_of<Row>()), ...);
}

}  // namespace flow::ops
