// Registers boxing's ops and kernels in the tables of the runtime.
#pragma once

namespace flow {
class KernelTable;
class OpTable;

namespace boxing {
void register_ops(OpTable& table);
void register_cpu_kernels(KernelTable& table);
}  // namespace boxing
}  // namespace flow
