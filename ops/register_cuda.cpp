// The list of all CUDA kernels; ops/no_cuda.cpp stands in its place in builds without CUDA.
#include "core/kernel.h"
#include "ops/register.h"

namespace flow {

namespace ops {
// One line a family in both lists, alphabetically.
void register_copy_cuda(KernelTable& table);
}  // namespace ops

void register_cuda_kernels(KernelTable& table) {
  ops::register_copy_cuda(table);
}

}  // namespace flow
