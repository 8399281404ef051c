// CUDA kernels of ops/elementwise/where.h.
#include "ops/elementwise/rows_cuda.cuh"

namespace flow::ops {

void register_where_cuda(KernelTable& table);

void register_where_cuda(KernelTable& table) {
  add_rows(table, ChoiceRows());
}

}  // namespace flow::ops
