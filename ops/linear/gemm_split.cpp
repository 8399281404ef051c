#include "ops/linear/gemm_split.h"

#include <algorithm>

#include "ops/kernel/divide_up.h"

namespace flow::ops {
namespace {

// The multiply-adds that justify a separate cell, or the two synchronisations of threads that
// shared packing needs for each part of k: about 0.1 ms.
constexpr double kWorthwhile = 8 << 20;
// A cell packs its operands itself. In a product that is short in one direction, the operand along
// that direction is small, so splitting the other direction into pieces of this length repeats
// little work.
constexpr int64_t kCellEdge = 256;
// More cells than this are useful on no machine.
constexpr int64_t kMaxCells = 64;
// Enough products to keep all threads busy without splitting any.
constexpr int64_t kManyProducts = 16;
// Products that are longer than this in both directions share their packing.
constexpr int64_t kSharedEdge = 96;

}  // namespace

GemmSplit split_gemm(int64_t batch, int64_t m, int64_t n, int64_t k) {
  GemmSplit split{.cell_batch = batch, .cell_m = m, .cell_n = n};
  if (batch == 0 || m == 0 || n == 0) return split;
  split.batch_cells = split.m_cells = split.n_cells = 1;
  const double product = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double all = product * static_cast<double>(batch);
  if (batch < kManyProducts && product >= kWorthwhile && std::min(m, n) >= kSharedEdge) {
    split.shares_packing = true;
    split.cell_batch = 1;
    split.batch_cells = batch;
    return split;
  }
  const auto cells = static_cast<int64_t>(std::clamp(all / kWorthwhile, 1.0, double{kMaxCells}));
  split.cell_batch = divide_up(batch, std::min(batch, cells));
  split.batch_cells = divide_up(batch, split.cell_batch);
  const int64_t wanted = cells / split.batch_cells;
  const bool along_m = m >= n;
  int64_t& edge = along_m ? split.cell_m : split.cell_n;
  const int64_t parts = std::clamp<int64_t>(edge / kCellEdge, 1, std::max<int64_t>(wanted, 1));
  edge = divide_up(edge, parts);
  (along_m ? split.m_cells : split.n_cells) = divide_up(along_m ? m : n, edge);
  return split;
}

}  // namespace flow::ops
