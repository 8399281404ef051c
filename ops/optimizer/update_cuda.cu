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
}

}  // namespace flow::ops
