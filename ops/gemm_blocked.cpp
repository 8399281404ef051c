// Blocked matrix product after Goto and van de Geijn (2008), "Anatomy of high-performance matrix
// multiplication".
//
// An element of C is the sum over parts of k, each the chain of fused multiply-adds of one register
// tile. Where rows and columns are cut does not enter, so one thread and several give the same
// bits.

#include "ops/gemm_blocked.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace flow::ops {
namespace {

// Of one part of k: a tile of B and of A fit the first cache, kRowBlock rows of A the second.
// Longer parts read and write C less often, but push those out.
constexpr int64_t kDepth = 256;
constexpr int64_t kRowBlock = 184;
// Of one panel of packed B (2 MiB for float), and of A where threads share it.
constexpr int64_t kColumns = 2048;
constexpr int64_t kSharedRows = 2048;
// Columns of one unit of work among threads.
constexpr int64_t kUnitColumns = 128;

const GemmKernelSet& kernel_set() {
  static const GemmKernelSet& kernels = *active_variant(FLOW_ISA_VARIANTS(kGemmKernels));
  return kernels;
}

template <class T>
const GemmKernels<T>& own_kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return kernel_set().f32;
  } else {
    return kernel_set().f64;
  }
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

GemmRange part(int64_t begin, int64_t step, int64_t end) {
  return {begin, std::min(step, end - begin)};
}

// Packing space of the calling thread: kept, as nearly every product needs it, and grown at need.
class PackingSpace {
 public:
  template <class T>
  T* get(int64_t count) {
    constexpr size_t kAlignment = 64;
    const size_t bytes = static_cast<size_t>(round_up(count, kAlignment)) * sizeof(T);
    if (bytes > bytes_) {
      space_.reset(std::aligned_alloc(kAlignment, bytes));
      bytes_ = space_ == nullptr ? 0 : bytes;
      if (space_ == nullptr) throw std::bad_alloc();
    }
    return static_cast<T*>(space_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };

  std::unique_ptr<void, Free> space_;
  size_t bytes_ = 0;
};

PackingSpace& packing_space() {
  thread_local PackingSpace space;
  return space;
}

// Where packed A and B go: whole tiles of the largest block.
template <class T>
struct Panels {
  T* a;
  T* b;

  Panels(const GemmKernels<T>& kernels, const GemmCall<T>& call, int64_t row_block) {
    const int64_t depth = std::min(kDepth, call.k);
    const int64_t columns = round_up(std::min(kColumns, call.n), kernels.tile_columns);
    const int64_t rows = round_up(std::min(row_block, call.m), kernels.tile_rows);
    b = packing_space().get<T>((columns + rows) * depth);
    a = b + columns * depth;
  }
};

template <class T>
void blocked(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  const int64_t row_block = round_up(kRowBlock - kernels.tile_rows + 1, kernels.tile_rows);
  const Panels<T> panels(kernels, call, row_block);
  for (int64_t column = 0; column < call.n; column += kColumns) {
    const GemmRange columns = part(column, kColumns, call.n);
    for (int64_t deep = 0; deep < call.k; deep += kDepth) {
      const GemmRange depth = part(deep, kDepth, call.k);
      kernels.pack_b(call, columns, depth, panels.b);
      for (int64_t row = 0; row < call.m; row += row_block) {
        const GemmRange rows = part(row, row_block, call.m);
        kernels.pack_a(call, rows, depth, panels.a);
        kernels.multiply(call, rows, columns, depth, panels.a, panels.b);
      }
    }
  }
}

}  // namespace

template <class T>
void own_gemm(const GemmCall<T>& call) {
  const GemmKernels<T>& kernels = own_kernels<T>();
  if (round_up(call.n, kernels.tile_columns) * call.k <= kDirectPanel) {
    kernels.direct(call);
  } else {
    blocked(kernels, call);
  }
}

template <class T>
void own_gemm_shared(const GemmLoops& loops, const GemmCall<T>& call) {
  const GemmKernels<T>& kernels = own_kernels<T>();
  const Panels<T> panels(kernels, call, kSharedRows);
  const int64_t unit_rows = round_up(kRowBlock - kernels.tile_rows + 1, kernels.tile_rows);
  for (int64_t column = 0; column < call.n; column += kColumns) {
    const GemmRange columns = part(column, kColumns, call.n);
    const int64_t column_units = (columns.size + kUnitColumns - 1) / kUnitColumns;
    for (int64_t deep = 0; deep < call.k; deep += kDepth) {
      const GemmRange depth = part(deep, kDepth, call.k);
      for (int64_t row = 0; row < call.m; row += kSharedRows) {
        const GemmRange rows = part(row, kSharedRows, call.m);
        const int64_t row_units = (rows.size + unit_rows - 1) / unit_rows;
        const auto unit_of_rows = [&](int64_t unit) {
          return part(row + unit * unit_rows, unit_rows, row + rows.size);
        };
        const auto unit_of_columns = [&](int64_t unit) {
          return part(column + unit * kUnitColumns, kUnitColumns, column + columns.size);
        };
        const auto packed_a = [&](GemmRange part) {
          return panels.a + (part.begin - row) * depth.size;
        };
        const auto packed_b = [&](GemmRange part) {
          return panels.b + (part.begin - column) * depth.size;
        };

        // B stays packed over all rows.
        const int64_t packs_of_b = row == 0 ? column_units : 0;
        loops.run(row_units + packs_of_b, [&](int64_t begin, int64_t end) {
          for (int64_t unit = begin; unit < end; ++unit) {
            if (unit < packs_of_b) {
              const GemmRange some = unit_of_columns(unit);
              kernels.pack_b(call, some, depth, packed_b(some));
            } else {
              const GemmRange some = unit_of_rows(unit - packs_of_b);
              kernels.pack_a(call, some, depth, packed_a(some));
            }
          }
        });
        loops.run(row_units * column_units, [&](int64_t begin, int64_t end) {
          for (int64_t unit = begin; unit < end; ++unit) {
            const GemmRange some_rows = unit_of_rows(unit / column_units);
            const GemmRange some_columns = unit_of_columns(unit % column_units);
            kernels.multiply(call, some_rows, some_columns, depth, packed_a(some_rows),
                             packed_b(some_columns));
          }
        });
      }
    }
  }
}

template void own_gemm(const GemmCall<float>&);
template void own_gemm(const GemmCall<double>&);
template void own_gemm_shared(const GemmLoops&, const GemmCall<float>&);
template void own_gemm_shared(const GemmLoops&, const GemmCall<double>&);

}  // namespace flow::ops
