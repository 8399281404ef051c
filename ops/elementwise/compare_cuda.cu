// CUDA kernels of ops/elementwise/compare.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_compare_cuda(KernelTable& table);

void register_compare_cuda(KernelTable& table) {
  add_rows(table, CompareRows());
}

}  // namespace flow::ops
