// CUDA kernels of ops/elementwise/binary.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_binary_cuda(KernelTable& table) {
  add_rows(table, ArithmeticRows());
}

}  // namespace flow::ops
