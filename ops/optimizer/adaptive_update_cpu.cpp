// Kernels of ops/optimizer/adaptive_update.cpp: one pass over a parameter and its state.
#include "ops/optimizer/adaptive_update_steps.h"
#include "ops/optimizer/update_loops.h"
#include "ops/optimizer/update_op.h"

#include "ops/kernel/isa_begin.h"

void register_adaptive_update_cpu(KernelTable& table) {
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

#include "ops/kernel/isa_end.h"
