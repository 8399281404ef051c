// CUDA kernels of ops/elementwise/trigonometry.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_trigonometry_cuda(KernelTable& table);

void register_trigonometry_cuda(KernelTable& table) {
  add_rows(table, TrigonometryRows());
}

}  // namespace flow::ops
