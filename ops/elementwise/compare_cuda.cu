// CUDA kernels of ops/elementwise/compare.h, made from the formulas of the CPU kernels.
#include "ops/elementwise/compare_formulas.h"
#include "ops/elementwise/compare_op.h"
#include "ops/elementwise/formulas_cuda.cuh"

namespace flow::ops {

void register_compare_cuda(KernelTable& table);

namespace {

// F(x, s) with the number of the call.
template <class F>
struct WithNumber {
  template <class C>
  struct Of {
    C s;

    explicit Of(const void* attrs)
        : s(static_cast<const ScalarAttrs*>(attrs)->value.template to<C>()) {}

    __device__ bool operator()(C x) const { return F::apply(x, s); }
  };
};

template <class F>
void add_tensors(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kAll, 2, true>(table, op);
}

template <class F>
void add_scalar(KernelTable& table, const OpDef& op) {
  add_formula<WithNumber<F>::template Of, Elements::kAll, 1, true>(table, op);
}

}  // namespace

void register_compare_cuda(KernelTable& table) {
  add_tensors<Eq>(table, kEq);
  add_tensors<Ne>(table, kNe);
  add_tensors<Lt>(table, kLt);
  add_tensors<Le>(table, kLe);
  add_tensors<Gt>(table, kGt);
  add_tensors<Ge>(table, kGe);
  add_tensors<LogicalAnd>(table, kLogicalAnd);
  add_tensors<LogicalOr>(table, kLogicalOr);
  add_tensors<LogicalXor>(table, kLogicalXor);
  add_scalar<Eq>(table, kEqScalar);
  add_scalar<Ne>(table, kNeScalar);
  add_scalar<Lt>(table, kLtScalar);
  add_scalar<Le>(table, kLeScalar);
  add_scalar<Gt>(table, kGtScalar);
  add_scalar<Ge>(table, kGeScalar);
}

}  // namespace flow::ops
