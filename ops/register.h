// The lists of all ops and of all CPU kernels, from which the runtime's tables are built.
#pragma once

namespace flow {

class KernelTable;
class OpTable;

void register_ops(OpTable& table);
// The kernels of every instruction set up to active_isa(), the widest last, so that it is
// preferred.
void register_cpu_kernels(KernelTable& table);

namespace ops {

// The kernels of a device in a table that is made at the first call, for kernels that consist of
// others: the select() of a kernel does not see the table that asks it.
const KernelTable& cpu_kernels();
const KernelTable& cuda_kernels();

}  // namespace ops

// The kernels of device cuda; there are none in builds without CUDA.
void register_cuda_kernels(KernelTable& table);

}  // namespace flow
