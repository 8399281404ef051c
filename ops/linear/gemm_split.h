#pragma once

// How gemm_parallel divides a task: a pure function of its sizes, so that the number of threads
// decides nothing.

#include <cstdint>

namespace flow::ops {

// Cells of at most cell_batch products x cell_m rows x cell_n columns, each computed by one thread
// as a product of its own; or, where `shares_packing`, one product after the other by all threads
// together (ops/linear/gemm_blocked.h).
struct GemmSplit {
  bool shares_packing = false;
  int64_t cell_batch = 0;
  int64_t cell_m = 0;
  int64_t cell_n = 0;
  int64_t batch_cells = 0;
  int64_t m_cells = 0;
  int64_t n_cells = 0;

  int64_t cells() const { return batch_cells * m_cells * n_cells; }
};

GemmSplit split_gemm(int64_t batch, int64_t m, int64_t n, int64_t k);

}  // namespace flow::ops
