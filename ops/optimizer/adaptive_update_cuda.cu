// CUDA kernels of ops/optimizer/adaptive_update.cpp.
#include "ops/optimizer/adaptive_update_steps.h"
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_steps_cuda.cuh"

namespace flow::ops {

using namespace isa_baseline;

void register_adaptive_update_cuda(KernelTable& table);

void register_adaptive_update_cuda(KernelTable& table) {
  add_update<AdamaxStep>(table, kAdamaxUpdate);
  add_update<RAdamStep>(table, kRAdamUpdate);
  add_update<NAdamStep>(table, kNAdamUpdate);
  add_update<RMSpropStep<false, false>>(table, kRMSpropUpdate);
  add_update<RMSpropStep<true, false>>(table, kRMSpropCenteredUpdate);
  add_update<RMSpropStep<false, true>>(table, kRMSpropMomentumUpdate);
  add_update<RMSpropStep<true, true>>(table, kRMSpropCenteredMomentumUpdate);
  add_update<AdagradStep>(table, kAdagradUpdate);
  add_update<AdadeltaStep>(table, kAdadeltaUpdate);
  add_update<LambDirectionStep>(table, kLambDirection);
  add_update<LambStep>(table, kLambUpdate);
}

}  // namespace flow::ops
