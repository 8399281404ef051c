// The kernel of to_device for host memory, the same for all instruction sets. Those that copy to
// and from devices are in ops/creation/to_device_cuda.cu.
#include "ops/creation/copy_op.h"
#include "ops/kernel/box_copy.h"
#include "ops/register.h"

namespace flow::ops {

namespace {
void to_host(const KernelContext& ctx) {
  copy_part(ctx.out(0), ctx.in(0));
}
}  // namespace

void register_to_device(KernelTable& table) {
  table.add(kToDevice, DeviceType::kCpu, {"reference", always<to_host>});
}

}  // namespace flow::ops
