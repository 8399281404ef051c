#pragma once

// How gemm_parallel divides a task. The division depends on the sizes only, so results do not
// depend on the number of threads.

#include <cstdint>

namespace flow::ops {

// A task is divided into cells of at most cell_batch products x cell_m rows x cell_n columns, each
// of which one thread computes as a separate product. If `shares_packing` is true, all threads
// compute one product after the other together (ops/linear/gemm_blocked.h).
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
