// CUDA kernels of ops/elementwise/unary.h and of its fused gradients, made from the formulas of the
// CPU kernels.
#include "ops/elementwise/rows_cuda.cuh"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_op.h"

namespace flow::ops {

namespace {

template <class F>
void add_grad(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kFloating, 2>(table, op);
}

}  // namespace

void register_unary_cuda(KernelTable& table) {
  add_rows(table, BasicRows());
  add_formula<LeakyRelu, Elements::kFloating, 1>(table, kLeakyRelu);
  add_formula<Elu, Elements::kFloating, 1>(table, kElu);
  add_formula<Softplus, Elements::kFloating, 1>(table, kSoftplus);
  add_formula<Applied<ReluGrad>::Of, Elements::kAll, 2>(table, kReluGrad);
  add_grad<TanhGrad>(table, kTanhGrad);
  add_grad<SigmoidGrad>(table, kSigmoidGrad);
  add_grad<GeluGrad>(table, kGeluGrad);
  add_grad<GeluTanhGrad>(table, kGeluTanhGrad);
  add_grad<SiluGrad>(table, kSiluGrad);
  add_formula<LeakyRelu, Elements::kFloating, 2>(table, kLeakyReluGrad);
  add_formula<Elu, Elements::kFloating, 2>(table, kEluGrad);
  add_formula<Softplus, Elements::kFloating, 2>(table, kSoftplusGrad);
}

}  // namespace flow::ops
