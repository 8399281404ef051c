// Kernels of ops/optimizer/update.h, in one pass. For each element, SGD reads 8 bytes of float and
// writes 4 (12 and 8 with momentum); Adam reads 16 and writes 12.
#include "ops/optimizer/update_loops.h"
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_steps.h"

#include "ops/kernel/isa_begin.h"

void register_update_cpu(KernelTable& table) {
  add_update<SgdStep>(table, kSgdUpdate);
  add_update<SgdMomentumStep>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>>(table, kAdamUpdate);
  add_update<AdamStep<true>>(table, kAmsgradUpdate);
}

#include "ops/kernel/isa_end.h"
