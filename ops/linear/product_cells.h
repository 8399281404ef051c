#pragma once

// Products of middle size on several threads.

#include "core/thread_pool.h"
#include "ops/linear/gemm.h"

namespace flow::ops {

// gemm_parallel, but a single product of middle size is cut into cells of rows or of
// columns, each the product of one thread. A cell packs its operands itself: up to that size this
// costs less than the meetings of threads that pack together, and a cell may use any library. The
// cells follow from the sizes alone.
template <class T>
void multiply_on_threads(ThreadPool& pool, const GemmTask<T>& task);

}  // namespace flow::ops
