// Kernels of ops/optimizer/update.h, in one pass. For each element, SGD reads 8 bytes of float and
// writes 4 (12 and 8 with momentum); Adam reads 16 and writes 12. With a master of a 16-bit
// parameter, SGD reads 8 and writes 6 (12 and 10), and Adam reads 16 and writes 14.
#include "ops/optimizer/update_loops.h"
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_steps.h"

#include "ops/kernel/isa_begin.h"

void register_update_cpu(KernelTable& table) {
  add_update<SgdStep>(table, kSgdUpdate);
  add_update<SgdMomentumStep>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>>(table, kAdamUpdate);
  add_update<AdamStep<true>>(table, kAmsgradUpdate);
  add_update<WithMaster<SgdStep>>(table, kSgdMasterUpdate);
  add_update<WithMaster<SgdMomentumStep>>(table, kSgdMomentumMasterUpdate);
  add_update<WithMaster<AdamStep<false>>>(table, kAdamMasterUpdate);
  add_update<WithMaster<AdamStep<true>>>(table, kAmsgradMasterUpdate);
}

#include "ops/kernel/isa_end.h"
