// CUDA kernels of ops/elementwise/ternary.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_ternary_cuda(KernelTable& table);

void register_ternary_cuda(KernelTable& table) {
  add_rows(table, TernaryRows());
}

}  // namespace flow::ops
