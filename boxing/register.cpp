#include "boxing/register.h"

#include "boxing/redistribute_op.h"
#include "boxing/routed_kernel.h"
#include "boxing/run_route.h"
#include "core/device/device_memory.h"
#include "core/kernel.h"

namespace flow::boxing {

namespace {

// Copies this rank's part to a separate tensor if a view is not possible.
void copy_part(const KernelContext& ctx) {
  const TensorMeta& meta = *ctx.in(0).meta;
  if (meta.local_numel == 0) return;
  copy_box(meta.local_shape, meta.strides, ctx.in(0).data, ctx.out(0).strides(), ctx.out(0).data,
           dtype_size(meta.dtype));
}

void copy_part_on_device(const KernelContext& ctx) {
  run_on_host(ctx, copy_part);
}

}  // namespace

void register_ops(OpTable& table) {
  table.add(kRedistribute);
  table.add(kAllReduceMean);
  table.add(kLocalToGlobal);
  table.add(kCandidatesToGlobal);
  table.add(kToLocal);
}

void register_cpu_kernels(KernelTable& table) {
  register_routed_kernels(table);
  table.add(kToLocal, DeviceType::kCpu, {"reference", always<copy_part>});
  table.add(kToLocal, DeviceType::kCuda, {"reference", always<copy_part_on_device>});
}

}  // namespace flow::boxing
