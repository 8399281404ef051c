// Kernels of ops/elementwise/compare.h. The compiler turns the comparisons into masks and packs
// them to bytes.
#include "ops/elementwise/compare_formulas.h"
#include "ops/elementwise/compare_op.h"
#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class F>
void add_pair(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  add_reference_predicate<OfTensors<F>, Types::kAll, 2>(table, op);
#endif
  add_loops<OfTensors<F>, bool, bool, bool>(table, op);
  add_loops<OfTensors<F>, bool, int64_t, int64_t>(table, op);
  add_loops<OfTensors<F>, bool, double, double>(table, op);
  add_loops<OfTensors<F>, bool, float, float>(table, op);
}

template <class F>
void add_scalar(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  add_reference_predicate<WithScalar<F>, Types::kAll, 1>(table, op);
#endif
  add_loops<WithScalar<F>, bool, int64_t>(table, op);
  add_loops<WithScalar<F>, bool, double>(table, op);
  add_loops<WithScalar<F>, bool, float>(table, op);
}

}  // namespace

void register_compare_cpu(KernelTable& table) {
  add_pair<Eq>(table, kEq);
  add_pair<Ne>(table, kNe);
  add_pair<Lt>(table, kLt);
  add_pair<Le>(table, kLe);
  add_pair<Gt>(table, kGt);
  add_pair<Ge>(table, kGe);
  add_pair<LogicalAnd>(table, kLogicalAnd);
  add_pair<LogicalOr>(table, kLogicalOr);
  add_pair<LogicalXor>(table, kLogicalXor);
  add_scalar<Eq>(table, kEqScalar);
  add_scalar<Ne>(table, kNeScalar);
  add_scalar<Lt>(table, kLtScalar);
  add_scalar<Le>(table, kLeScalar);
  add_scalar<Gt>(table, kGtScalar);
  add_scalar<Ge>(table, kGeScalar);
}

#include "ops/kernel/isa_end.h"
