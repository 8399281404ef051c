#include "ops/linear/product_cells.h"

#include <algorithm>

#include "ops/kernel/divide_up.h"
#include "ops/linear/gemm_split.h"

namespace flow::ops {
namespace {

// The multiply-adds of a cell, about 25 µs, and of the largest product that is divided. Sizes below
// a tile take as long as a whole tile.
constexpr int64_t kLeastCell = 2 << 20;
constexpr int64_t kLargestProduct = int64_t{256} << 20;
constexpr int64_t kTile = 32;
// The number of threads that the division of a small product serves, and more cells than any
// machine needs.
constexpr int64_t kFewCells = 4;
constexpr int64_t kMostCells = 64;
// Fewer rows or columns multiply slowly; long dims have cells of kLong.
constexpr int64_t kLeastRows = 32;
constexpr int64_t kLeastColumns = 64;
constexpr int64_t kLong = 256;

int64_t cells_along(int64_t size, int64_t least) {
  return std::clamp<int64_t>(std::max(std::min(size / least, kFewCells), size / kLong), 1,
                             kMostCells);
}

struct Cut {
  bool along_m;
  int64_t edge;   // rows or columns of a cell
  int64_t cells;  // 0: not divided here
};

// A large product with a bias is left to the kernels that pack together, because the libraries
// would read and write C once more.
template <class T>
bool is_left_to_gemm(const GemmTask<T>& task) {
  if (task.bias == nullptr) return false;
  const GemmSplit split = split_gemm(task.batch, task.m, task.n, task.k);
  return split.shares_packing || split.cells() > 1;
}

// Divides rows, unless there are so few that packing all columns for each cell would be noticeable.
template <class T>
Cut cut_of(const GemmTask<T>& task) {
  const double volume = static_cast<double>(std::max(task.m, kTile)) *
                        static_cast<double>(std::max(task.n, kTile)) *
                        static_cast<double>(std::max(task.k, kTile));
  if (task.batch != 1 || volume > static_cast<double>(kLargestProduct) || is_left_to_gemm(task))
    return {};
  const int64_t by_rows = cells_along(task.m, kLeastRows);
  const int64_t by_columns = cells_along(task.n, kLeastColumns);
  const bool along_m = (by_rows >= kFewCells && task.n < kFewCells * task.m) || by_columns == 1;
  const int64_t most = static_cast<int64_t>(volume) / kLeastCell;
  const int64_t size = along_m ? task.m : task.n;
  const int64_t wanted = std::min(along_m ? by_rows : by_columns, most);
  if (wanted < 2) return {};
  const int64_t edge = divide_up(divide_up(size, wanted), kTile) * kTile;
  return {along_m, edge, divide_up(size, edge)};
}

}  // namespace

template <class T>
void multiply_on_threads(ThreadPool& pool, const GemmTask<T>& task) {
  const Cut cut = cut_of(task);
  if (cut.cells == 0) {
    gemm_parallel([&](int64_t begin, int64_t end, int64_t grain,
                      const auto& fn) { pool.parallel_for(begin, end, grain, fn); },
                  task);
    return;
  }
  pool.parallel_for(0, cut.cells, 1, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t at = cell * cut.edge;
      GemmTask<T> part = task;
      if (cut.along_m) {
        part.m = std::min(cut.edge, task.m - at);
        part.a += task.transpose_a == Transpose::kYes ? at : at * task.lda;
        part.c += at * task.ldc;
      } else {
        part.n = std::min(cut.edge, task.n - at);
        part.b += task.transpose_b == Transpose::kYes ? at * task.ldb : at;
        part.c += at;
        if (task.bias != nullptr) part.bias += at;
      }
      gemm_batched(part);
    }
  });
}

template void multiply_on_threads(ThreadPool&, const GemmTask<float>&);
template void multiply_on_threads(ThreadPool&, const GemmTask<double>&);

}  // namespace flow::ops
