// Blocked matrix product after Goto and van de Geijn (2008), "Anatomy of high-performance matrix
// multiplication".
//
// An element of C is the sum over parts of k, and each part is the chain of fused multiply-adds of
// one register tile. The boundaries of row and column blocks do not influence the result, so one
// thread and several give the same bits.

#include "ops/linear/gemm_blocked.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "ops/kernel/cpu_model.h"
#include "ops/kernel/divide_up.h"
#include "ops/linear/cpu_table.h"

namespace flow::ops {
namespace {

// The columns of B that are packed at once. Fewer would repeat the packing of A.
constexpr int64_t kColumns = 1024;

// A unit of work packs its own rows of A. Fewer rows would read B more often, and fewer columns
// would repeat the packing of A.
constexpr int64_t kMinUnitRows = 56;
constexpr int64_t kMinUnitColumns = 256;
// The number of units in each part of k that threads can share evenly.
constexpr int64_t kEnoughUnits = 8;

// For few rows, as many elements of B fit half of a second-level cache of 512 KiB together with
// those that are prefetched.
constexpr int64_t kElementsOfFewRows = 65536;

// Shorter sums leave most of the time to the addition of lanes. Each row adds to this, because rows
// would share the packing that dot products save.
constexpr int64_t kShortestDotOfARow = 16;

// The data that is packed next is prefetched if no more columns than these are multiplied and A has
// to be gathered from its rows. This is the case for a long sum of small operands, as in gradients
// of weights. Wider panels would be evicted from the second-level cache: half of it holds a panel
// and the next one.
template <class T>
int64_t max_columns_fetched_ahead(int64_t depth) {
  constexpr int64_t kMeasuredEverywhere = 256;
  static const int64_t cache_elements =
      second_level_cache_bytes() / static_cast<int64_t>(sizeof(T));
  return std::max(kMeasuredEverywhere, cache_elements / 4 / depth);
}

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

// The packing space of the calling thread. It is kept, because nearly every product needs it, and
// grows as needed. There is one for each operand: a thread that packs A may own the B that all
// threads use.
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

// One for each operand: a thread that packs A may be the one whose B all use.
struct PackingSpaces {
  PackingSpace a;
  PackingSpace b;
};

PackingSpaces& packing_spaces() {
  thread_local PackingSpaces spaces;
  return spaces;
}

struct Unit {
  int64_t rows;
  int64_t columns;
};

// The longest part of k that is multiplied at once.
template <class T>
int64_t longest_part(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  if (std::is_same_v<T, float> && call.a_col == 1) return cpu_table().depth;
  return kernels.max_depth;
}

// All columns at once, which is fastest for one thread. Longer parts of k leave cache for fewer
// rows.
template <class T>
Unit largest_unit(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  const int64_t rows = kernels.unit_rows * kernels.max_depth / longest_part(kernels, call);
  return {std::max<int64_t>(rows / kernels.tile_rows, 1) * kernels.tile_rows, kColumns};
}

// Makes enough units for several threads: first with fewer rows, then with fewer columns. The
// choice depends on the shape alone.
template <class T>
Unit shared_unit(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  const int64_t most_rows = std::max(kMinUnitRows, largest_unit(kernels, call).rows);
  const int64_t rows = std::clamp(call.m / kEnoughUnits, kMinUnitRows, most_rows);
  Unit unit{rows / kernels.tile_rows * kernels.tile_rows, kColumns};
  const int64_t row_units = divide_up(call.m, unit.rows);
  while (unit.columns > kMinUnitColumns &&
         row_units * divide_up(std::min(call.n, kColumns), unit.columns) < kEnoughUnits) {
    unit.columns /= 2;
  }
  return unit;
}

// A block of an operand; `along` is its stride over the range, `deep` over the depth, one of
// them 1.
template <class T>
GemmAhead block_of(const T* source, int64_t along, int64_t deep, GemmRange range, GemmRange depth) {
  const T* first = source + range.begin * along + depth.begin * deep;
  constexpr int64_t kBytes = sizeof(T);
  if (deep == 1) return {first, range.size, depth.size * kBytes, along * kBytes};
  return {first, depth.size, range.size * kBytes, deep * kBytes};
}

// Runs everything on the calling thread.
struct SerialLoops {
  template <class Body>
  void run(int64_t count, const Body& body) const {
    body(int64_t{0}, count);
  }
};

// For each panel of columns and part of k: one loop packs B, the next packs A and multiplies, unit
// by unit.
template <class T, class Loops>
void blocked(const Loops& loops, const GemmKernels<T>& kernels, const GemmCall<T>& call,
             Unit unit) {
  const bool has_few_rows = call.m <= kernels.narrow_rows;
  // Parts of equal length: a short last one would read and write C for few multiplications.
  const int64_t part_depth = divide_up(call.k, divide_up(call.k, longest_part(kernels, call)));
  const int64_t panel = has_few_rows ? kElementsOfFewRows / kernels.max_depth : kColumns;
  unit.columns = std::min(unit.columns, panel);
  const int64_t panel_columns = round_up(std::min(panel, call.n), kernels.tile_columns);
  T* packed_b = packing_spaces().b.get<T>(panel_columns * part_depth);
  const int64_t row_units = divide_up(call.m, unit.rows);
  const bool fetches_ahead =
      has_few_rows || (call.a_col != 1 && call.n <= max_columns_fetched_ahead<T>(part_depth));
  for (int64_t column = 0; column < call.n; column += panel) {
    const int64_t columns_end = std::min(column + panel, call.n);
    const int64_t column_units = divide_up(columns_end - column, unit.columns);
    const int64_t packs = divide_up(columns_end - column, kMinUnitColumns);
    for (int64_t deep = 0; deep < call.k; deep += part_depth) {
      const GemmRange depth = part(deep, part_depth, call.k);
      loops.run(packs, [&](int64_t begin, int64_t end) {
        const GemmRange columns{column + begin * kMinUnitColumns,
                                std::min(column + end * kMinUnitColumns, columns_end) -
                                    (column + begin * kMinUnitColumns)};
        kernels.pack_b(call, columns, depth, packed_b + (columns.begin - column) * depth.size);
      });
      loops.run(row_units * column_units, [&](int64_t begin, int64_t end) {
        T* packed_a = packing_spaces().a.get<T>(unit.rows * depth.size);
        int64_t packed_unit = -1;
        for (int64_t i = begin; i < end; ++i) {
          const GemmRange rows = part(i / column_units * unit.rows, unit.rows, call.m);
          const GemmRange columns =
              part(column + i % column_units * unit.columns, unit.columns, columns_end);
          if (packed_unit != i / column_units) kernels.pack_a(call, rows, depth, packed_a);
          packed_unit = i / column_units;
          // The data that is packed next: A of the following unit or, for the following part of k,
          // A of the first unit; and this unit's share of that part's B.
          const GemmRange next_depth =
              part(std::min(deep + part_depth, call.k), part_depth, call.k);
          const bool is_last = (i + 1) / column_units * column_units >= end;
          const int64_t next_unit = is_last ? begin / column_units : packed_unit + 1;
          const bool ends_rows = i % column_units == column_units - 1;
          const GemmAhead ahead_a = !fetches_ahead || !ends_rows
                                        ? GemmAhead{}
                                        : block_of(call.a, call.a_row, call.a_col,
                                                   part(next_unit * unit.rows, unit.rows, call.m),
                                                   is_last ? next_depth : depth);
          const int64_t share = divide_up(columns_end - column, row_units * column_units);
          const int64_t shared = std::min(column + i * share, columns_end);
          const GemmAhead ahead_b = !fetches_ahead
                                        ? GemmAhead{}
                                        : block_of(call.b, call.b_col, call.b_row,
                                                   part(shared, share, columns_end), next_depth);
          kernels.multiply(call, rows, columns, depth, packed_a,
                           packed_b + (columns.begin - column) * depth.size, ahead_a, ahead_b);
        }
      });
    }
  }
}

// A contiguous column is a row, and B transposed then multiplies A transposed.
template <class T>
GemmCall<T> as_one_row(const GemmCall<T>& call) {
  GemmCall<T> row = call;
  row.m = 1;
  row.n = call.m;
  row.a = call.b;
  row.a_row = call.b_col;
  row.a_col = call.b_row;
  row.b = call.a;
  row.b_row = call.a_col;
  row.b_col = call.a_row;
  row.ldc = call.m;
  return row;
}

// Whether the product is computed as dot products: the operand with more rows has to be contiguous
// along k.
template <class T>
bool is_dots(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  const bool few_rows = call.m <= call.n;
  const int64_t rows = few_rows ? call.m : call.n;
  return rows <= (few_rows ? kernels.dot_rows : kernels.dot_columns) &&
         call.k >= kShortestDotOfARow * rows && (few_rows ? call.b_row : call.a_col) == 1;
}

// The operand with fewer rows is copied if it is not contiguous along k.
template <class T>
void dots(const GemmKernels<T>& kernels, const GemmCall<T>& call) {
  const bool few_rows = call.m <= call.n;
  const int64_t rows = few_rows ? call.m : call.n;
  const int64_t stride = few_rows ? call.a_col : call.b_row;
  if (stride == 1) return kernels.dots(call);
  // Rows that are a multiple of 4 KiB apart would share their sets of the first-level cache.
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t row = round_up(call.k, kLine) + kLine;
  T* packed = packing_spaces().a.get<T>(rows * row);
  const T* source = few_rows ? call.a : call.b;
  for (int64_t p = 0; p < call.k; ++p) {
    for (int64_t i = 0; i < rows; ++i)
      packed[i * row + p] = source[p * stride + i];
  }
  GemmCall<T> contiguous = call;
  (few_rows ? contiguous.a : contiguous.b) = packed;
  (few_rows ? contiguous.a_row : contiguous.b_col) = row;
  (few_rows ? contiguous.a_col : contiguous.b_row) = 1;
  kernels.dots(contiguous);
}

}  // namespace

template <class T>
void own_gemm(const GemmCall<T>& call) {
  const GemmKernels<T>& kernels = own_kernels<T>();
  const bool is_column = call.n == 1 && call.m > 1 && call.ldc == 1;
  const bool has_dots = is_dots(kernels, call);
  const bool is_direct = round_up(call.n, kernels.tile_columns) * call.k <= kDirectPanel;
  const bool has_few_rows = call.m <= kernels.few_rows && call.b_col == 1;
  if (!is_column && !has_dots && !is_direct && !has_few_rows) {
    blocked(SerialLoops(), kernels, call, largest_unit(kernels, call));
  } else if (call.bias != nullptr) {  // C is small
    own_gemm(with_bias_in_c(call));
  } else if (is_column) {
    own_gemm(as_one_row(call));
  } else if (has_dots) {
    dots(kernels, call);
  } else if (is_direct) {
    kernels.direct(call);
  } else {
    kernels.few_rows_product(
        call, packing_spaces().a.get<T>(call.m * round_up(call.k, kernels.few_rows_depth)));
  }
}

template <class T>
void own_gemm_shared(const GemmLoops& loops, const GemmCall<T>& call) {
  const GemmKernels<T>& kernels = own_kernels<T>();
  blocked(loops, kernels, call, shared_unit(kernels, call));
}

template void own_gemm(const GemmCall<float>&);
template void own_gemm(const GemmCall<double>&);
template void own_gemm_shared(const GemmLoops&, const GemmCall<float>&);
template void own_gemm_shared(const GemmLoops&, const GemmCall<double>&);

}  // namespace flow::ops
