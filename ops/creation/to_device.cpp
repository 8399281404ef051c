// Kernels of to_device. They are the same for all instruction sets and for both directions of a
// copy.
#include "core/device/device_memory.h"
#include "core/kernel.h"
#include "ops/creation/copy_op.h"
#include "ops/kernel/box_copy.h"
#include "ops/register.h"

namespace flow::ops {

namespace {

void send(const KernelContext& ctx, const std::byte* source, DeviceType device) {
  const TensorView& y = ctx.out(0);
  copy_bytes(ctx.rank, y.data, y.meta->device, source, device, y.meta->local_bytes());
}

// A strided x is first made contiguous in host memory.
void to_device(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  if (x.numel() == 0) return;
  if (x.meta->is_contiguous) return send(ctx, x.data, x.meta->device);
  const TensorMeta& meta = *x.meta;
  const bool is_on_host = meta.device == DeviceType::kCpu;
  const Ref<Storage> spanned = is_on_host ? Ref<Storage>() : host_copy(ctx.rank, x);
  const Ref<Storage> packed = allocate_staging(ctx.rank, meta.local_bytes());
  copy_box(meta.local_shape, {packed->data(), contiguous_strides(meta.local_shape)},
           {is_on_host ? x.data : spanned->data(), meta.strides}, dtype_size(meta.dtype));
  send(ctx, packed->data(), DeviceType::kCpu);
}

}  // namespace

void register_to_device(KernelTable& table) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda})
    table.add(kToDevice, device, {"reference", always<to_device>});
}

}  // namespace flow::ops
