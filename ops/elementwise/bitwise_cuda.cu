// CUDA kernels of ops/elementwise/bitwise.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_bitwise_cuda(KernelTable& table);

void register_bitwise_cuda(KernelTable& table) {
  add_rows(table, BitRows());
}

}  // namespace flow::ops
