// CUDA kernels of ops/optimizer/update.h: one pass over a parameter and its state.
#include "ops/optimizer/update_op.h"
#include "ops/optimizer/update_steps.h"
#include "ops/optimizer/update_steps_cuda.cuh"

namespace flow::ops {

using namespace isa_baseline;

void register_update_cuda(KernelTable& table) {
  add_update<SgdStep>(table, kSgdUpdate);
  add_update<SgdMomentumStep>(table, kSgdMomentumUpdate);
  add_update<AdamStep<false>>(table, kAdamUpdate);
  add_update<AdamStep<true>>(table, kAmsgradUpdate);
  add_update<WithMaster<SgdStep>>(table, kSgdMasterUpdate);
  add_update<WithMaster<SgdMomentumStep>>(table, kSgdMomentumMasterUpdate);
  add_update<WithMaster<AdamStep<false>>>(table, kAdamMasterUpdate);
  add_update<WithMaster<AdamStep<true>>>(table, kAmsgradMasterUpdate);
}

}  // namespace flow::ops
