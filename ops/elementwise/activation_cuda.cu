// CUDA kernels of ops/elementwise/activation.h, made from the formulas of the CPU kernels.
#include "ops/elementwise/activation_formulas.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_activation_cuda(KernelTable& table);

namespace {

template <class F>
void add_pair(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kFloating, 2>(table, op);
}

}  // namespace

void register_activation_cuda(KernelTable& table) {
  add_rows(table, ActivationRows());
  for (const OpDef* op : {&kCelu, &kSelu})
    add_formula<ScaledElu, Elements::kFloating, 1>(table, *op);
  add_formula<Hardtanh, Elements::kFloating, 1>(table, kHardtanh);
  add_pair<Prelu>(table, kPrelu);
  add_formula<ScaledEluGrad, Elements::kFloating, 2>(table, kScaledEluGrad);
  add_pair<MishGrad>(table, kMishGrad);
  add_pair<HardswishGrad>(table, kHardswishGrad);
  add_pair<HardsigmoidGrad>(table, kHardsigmoidGrad);
  add_formula<Hardtanh, Elements::kFloating, 2>(table, kHardtanhGrad);
  add_pair<SoftsignGrad>(table, kSoftsignGrad);
  add_pair<LogsigmoidGrad>(table, kLogsigmoidGrad);
}

}  // namespace flow::ops
