#pragma once

// Products of medium size on several threads.

#include "core/thread_pool.h"
#include "ops/linear/gemm.h"

namespace flow::ops {

// The same as gemm_parallel, but a single product of medium size is divided into cells of rows or
// of columns, and one thread computes each cell. A cell packs its operands itself: up to that size
// this costs less than synchronising threads that pack together, and a cell may use any library.
// The cells depend on the sizes only.
template <class T>
void multiply_on_threads(ThreadPool& pool, const GemmTask<T>& task);

}  // namespace flow::ops
