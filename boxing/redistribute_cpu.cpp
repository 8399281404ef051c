// Kernels of the layout ops on host memory.
#include "boxing/redistribute_op.h"
#include "boxing/register.h"
#include "core/kernel.h"

namespace flow::boxing {

namespace {

KernelChoice select_redistribute(const KernelQuery& query) {
  throw Unsupported(str("[redistribute] moving data between ranks is not supported yet; received ",
                        query.input(0), " for ", query.output(0)));
}

}  // namespace

void register_ops(OpTable& table) {
  table.add(kRedistribute);
  table.add(kLocalToGlobal);
  table.add(kToLocal);
}

void register_cpu_kernels(KernelTable& table) {
  const KernelDef redistribute{.name = "reference", .select = select_redistribute};
  table.add(kRedistribute, DeviceType::kCpu, redistribute);
  table.add(kLocalToGlobal, DeviceType::kCpu, redistribute);
}

}  // namespace flow::boxing
