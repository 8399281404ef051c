// Compiled once for each instruction set (FLOW_ISA), see ops/linear/gemm_kernels.h.

#include "ops/kernel/divide_up.h"
#include "ops/kernel/vector.h"
#include "ops/linear/gemm_dots.h"
#include "ops/linear/gemm_few_rows.h"
#include "ops/linear/gemm_kernels.h"
#include "ops/linear/gemm_pack.h"

#include "ops/kernel/isa_begin.h"

namespace {

// Register tile: rows x vectors of accumulators, one row of B and one element of A within 32
// (AVX-512) or 16 registers.
#if FLOW_ISA == 2
constexpr int kTileRows = 14;
#elif FLOW_ISA == 1
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
// For the direct kernel: enough accumulators to hide the latency of the additions and, with more
// registers, few loads of B for each.
#if FLOW_ISA == 2
constexpr int kDirectRows = 8;
#elif FLOW_ISA == 1
constexpr int kDirectRows = 6;
#else
constexpr int kDirectRows = 4;
#endif

template <class T>
constexpr int64_t kTileColumns = kTileVectors* Vec<T>::kLanes;

// kRows x kVectors registers of C; `tail` columns are in the last register of a row if kTail.
// kPackedB: the rows of B can be read past the tail.
template <class T, int kRows, int kVectors, bool kTail, bool kPackedB>
void direct_tile(const GemmCall<T>& call, const T* a, const T* b, T* c, int64_t tail) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  Vec<T> sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = Vec<T>::zero();
  }
  for (int64_t p = 0; p < call.k; ++p) {
    Vec<T> b_row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      b_row[v] = kTail && !kPackedB && v == kVectors - 1 ? Vec<T>::load_n(b + v * kLanes, tail)
                                                         : Vec<T>::load(b + v * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> factor = Vec<T>::fill(a[r * call.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = fma(factor, b_row[v], sum[r][v]);
    }
    a += call.a_col;
    b += call.b_row;
  }
  // These are copies, because the compiler must assume that a store to C changes the call.
  const T alpha = call.alpha;
  const T beta = call.beta;
  const int64_t ldc = call.ldc;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t count = kTail && v == kVectors - 1 ? tail : kLanes;
      store_scaled(c + r * ldc + v * kLanes, sum[r][v], count, alpha, beta);
    }
  }
}

// Up to kTileColumns columns of kRows rows.
template <class T, int kRows, bool kPackedB>
void direct_rows(const GemmCall<T>& call, const T* a, const T* b, T* c, int64_t columns) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  if (columns == 2 * kLanes) {
    direct_tile<T, kRows, 2, false, kPackedB>(call, a, b, c, 0);
  } else if (columns > kLanes) {
    direct_tile<T, kRows, 2, true, kPackedB>(call, a, b, c, columns - kLanes);
  } else if (columns == kLanes) {
    direct_tile<T, kRows, 1, false, kPackedB>(call, a, b, c, 0);
  } else {
    direct_tile<T, kRows, 1, true, kPackedB>(call, a, b, c, columns);
  }
}

// Processes as many groups of kRows as there are and returns the number of remaining rows.
template <int kRows, bool kPackedB, class T>
int64_t direct_groups(const GemmCall<T>& call, const T*& a, const T* b, T*& c, int64_t rows,
                      int64_t columns) {
  for (; rows >= kRows; rows -= kRows) {
    direct_rows<T, kRows, kPackedB>(call, a, b, c, columns);
    a += kRows * call.a_row;
    c += kRows * call.ldc;
  }
  return rows;
}

template <class T, bool kPackedB>
void direct_columns(const GemmCall<T>& call, const T* b, T* c, int64_t columns) {
  const T* a = call.a;
  int64_t rows = direct_groups<kDirectRows, kPackedB>(call, a, b, c, call.m, columns);
  if constexpr (kDirectRows > 4) rows = direct_groups<4, kPackedB>(call, a, b, c, rows, columns);
  if (rows == 3) direct_rows<T, 3, kPackedB>(call, a, b, c, columns);
  if (rows == 2) direct_rows<T, 2, kPackedB>(call, a, b, c, columns);
  if (rows == 1) direct_rows<T, 1, kPackedB>(call, a, b, c, columns);
}

template <class T>
void direct(const GemmCall<T>& call) {
  constexpr int64_t kWidth = kTileColumns<T>;
  if (call.b_col == 1) {
    for (int64_t j = 0; j < call.n; j += kWidth) {
      direct_columns<T, false>(call, call.b + j, call.c + j, smaller(kWidth, call.n - j));
    }
    return;
  }
  T panel[kDirectPanel];
  pack<kWidth>(call.b, call.b_col, call.b_row, call.n, call.k, panel);
  GemmCall<T> packed = call;
  packed.b_row = kWidth;
  for (int64_t j = 0; j < call.n; j += kWidth) {
    direct_columns<T, true>(packed, panel + j * call.k, call.c + j, smaller(kWidth, call.n - j));
  }
}

// The number of bytes by which B is prefetched: it streams from the second-level cache.
constexpr int64_t kPrefetchBytes = 2048;

constexpr int64_t kLineBytes = 64;

// Steps through memory that will be used next and prefetches some lines of it at each call.
class Fetcher {
 public:
  explicit Fetcher(const GemmAhead& ahead)
      : row_(static_cast<const char*>(ahead.first)),
        row_lines_((ahead.row_bytes + kLineBytes - 1) / kLineBytes),
        stride_(ahead.stride),
        left_(ahead.rows * row_lines_) {}

  int64_t left() const { return left_; }

  // kCache: 3 the first, 2 the second.
  template <int kCache>
  void fetch(int64_t lines) {
    const int64_t count = smaller(lines, left_);
    if (count <= 0) return;
    left_ -= count;
    int64_t line = line_;
    for (int64_t i = count; i > 0; --i) {
      __builtin_prefetch(row_ + line * kLineBytes, 0, kCache);
      if (++line == row_lines_) {
        line = 0;
        row_ += stride_;
      }
    }
    line_ = line;
  }

 private:
  const char* row_;
  int64_t row_lines_;
  int64_t stride_;
  int64_t left_;
  int64_t line_ = 0;
};

// The memory that is prefetched while tiles are multiplied, and the number of lines per step.
struct Fetches {
  bool any() const { return rows.left() + a.left() + b.left() > 0; }

  Fetcher rows;  // of A below those of the tile
  Fetcher a;
  Fetcher b;
  int64_t row_lines = 0;
  int64_t a_lines = 0;
  int64_t b_lines = 0;
};

// A tile of A stays in the first-level cache while the tiles of B pass over it, so C is visited
// along its rows: this saves address translation and allows the hardware to prefetch. With AVX-512
// the other order is up to a fifth slower at 2048. With AVX2 a tile of B is 2.7 times as large as
// one of A, and it is 3 to 7 % faster to let packed A pass over it (Zen 3). Rows that are read in
// place would be too far apart.
constexpr bool kPackedAPasses = FLOW_ISA < 2;

// The loop over k has steps of this length, and some memory is prefetched at each step: about 200
// cycles of a tile. Where packed A passes over B and nothing is prefetched, it is one step.
constexpr int64_t kStep = FLOW_ISA == 2 ? 16 : 32;

// The elements of A that a tile reads: element (r, p) is first[r * row + p * column], and one of
// the two strides is 1.
template <class T>
struct TileRows {
  const T* first;
  int64_t row;
  int64_t column;
};

// The destination of a tile: `rows` and `columns` of it are inside C, and `bias` may be null.
template <class T>
struct TileTarget {
  T* c;
  int64_t ldc;
  int64_t rows;
  int64_t columns;
  T alpha;
  T beta;
  const T* bias;
};

// sum += *factor * b, where the instruction reads and broadcasts the factor itself.
#if FLOW_ISA == 2
inline void add_product(Vec<float>& sum, const float* factor, const Vec<float>& b) {
  __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.reg) : "v"(b.reg), "m"(*factor));
}

inline void add_product(Vec<double>& sum, const double* factor, const Vec<double>& b) {
  __asm__("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sum.reg) : "v"(b.reg), "m"(*factor));
}
#else
template <class T>
inline void add_product(Vec<T>& sum, const T* factor, const Vec<T>& b) {
  sum = fma(Vec<T>::fill(*factor), b, sum);
}
#endif

// Whether a row of a tile is multiplied so. With AVX-512 every second row of packed A is: 37
// instructions for 28 multiply-adds, which would be 44 if each factor was loaded on its own, and 23
// loads, which two loads in a cycle can hide. Of rows that are read in place it is those that have
// a pointer, because other addresses would take an instruction.
constexpr bool multiplies_memory(bool strided, int row) {
  return FLOW_ISA == 2 && (strided ? row % 3 == 0 : row % 2 == 1);
}

// kRows x kVectors registers of C from packed B and, if kStrided, from contiguous rows of A,
// otherwise from columns, as packing leaves them. Reads kRows rows of A. If kFetchesB, B is in the
// second-level cache or farther away. Where it is in the first, prefetching it takes issue slots
// from the multiplications, of which another thread of the same core may leave few.
template <class T, int kRows, int kVectors, bool kStrided, bool kFetchesB>
void tile(int64_t depth, const TileRows<T>& rows, const T* b, const TileTarget<T>& target,
          Fetches& fetches) {
  // Every third row of A has a pointer, those between are reached from it.
  constexpr int kGroups = (kRows + 2) / 3;
  const int64_t a_row = rows.row;
  const int64_t a_column = rows.column;
  const T* a = rows.first;
  const T* group[kGroups];
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g)
    group[g] = a + (kStrided ? int64_t{3} * g * a_row : 0);
  Vec<T> sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = Vec<T>::zero();
  }
  T* const c = target.c;
  const int64_t ldc = target.ldc;
  constexpr int64_t kLine = kLineBytes / sizeof(T);
  const int64_t step = kPackedAPasses && !fetches.any() ? depth : kStep;
  const int64_t steps = divide_up(depth, step);
  // C is prefetched in the first half, because a line may come from the third-level cache.
  const int64_t c_rows = smaller<int64_t>(target.rows, kRows);
  const int64_t c_rows_of_step = 2 * divide_up(c_rows, steps);
  int64_t c_row = 0;
  for (int64_t begin = 0; begin < depth; begin += step) {
    for (const int64_t end = smaller(c_row + c_rows_of_step, c_rows); c_row < end; ++c_row) {
#pragma GCC unroll 2
      for (int64_t i = 0; i < kVectors * Vec<T>::kLanes; i += kLine)
        __builtin_prefetch(c + c_row * ldc + i, 1);
    }
    fetches.rows.fetch<3>(fetches.row_lines);
    fetches.a.fetch<2>(fetches.a_lines);
    fetches.b.fetch<2>(fetches.b_lines);
#pragma GCC unroll 4
    for (int64_t p = smaller(step, depth - begin); p > 0; --p) {
      if constexpr (kFetchesB) {
#pragma GCC unroll 2
        for (int64_t i = 0; i < kTileColumns<T>; i += kLine)
          __builtin_prefetch(b + i + kPrefetchBytes / sizeof(T));
      }
      Vec<T> b_row[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        b_row[v] = Vec<T>::load(b + v * Vec<T>::kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const T* const factor = kStrided ? group[r / 3] + r % 3 * a_row : a + r;
        if (multiplies_memory(kStrided, r)) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            add_product(sum[r][v], factor, b_row[v]);
        } else {
          const Vec<T> loaded = Vec<T>::fill(*factor);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            sum[r][v] = fma(loaded, b_row[v], sum[r][v]);
        }
      }
      if constexpr (kStrided) {
#pragma GCC unroll 8
        for (int g = 0; g < kGroups; ++g)
          ++group[g];
      } else {
        a += a_column;
      }
      b += kTileColumns<T>;
    }
  }
  // These are copies, because the compiler must assume that a store to C changes them.
  const T alpha = target.alpha;
  const T beta = target.beta;
  const int64_t columns = target.columns;
  if (const T* bias = target.bias; bias != nullptr) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = columns - v * Vec<T>::kLanes;
      if (left <= 0) break;
      const Vec<T> own = left >= Vec<T>::kLanes ? Vec<T>::load(bias + v * Vec<T>::kLanes)
                                                : Vec<T>::load_n(bias + v * Vec<T>::kLanes, left);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
        sum[r][v] = sum[r][v] + own;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    if (r < c_rows) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        store_scaled(c + r * ldc + v * Vec<T>::kLanes, sum[r][v], columns - v * Vec<T>::kLanes,
                     alpha, beta);
    }
  }
}

// The number of rows of the tiles at the lower edge of C; other tiles have kTileRows.
constexpr int kFewRows = FLOW_ISA == 2 ? 4 : 2;
constexpr int kSomeRows = FLOW_ISA == 2 ? 8 : 4;

template <class T, int kRows, bool kStrided, bool kFetchesB>
void tile_of_rows(int64_t depth, const TileRows<T>& rows, const T* b, const TileTarget<T>& target,
                  Fetches& fetches) {
  if (target.columns > Vec<T>::kLanes) {
    tile<T, kRows, 2, kStrided, kFetchesB>(depth, rows, b, target, fetches);
  } else {
    tile<T, kRows, 1, kStrided, kFetchesB>(depth, rows, b, target, fetches);
  }
}

// A tile from packed A, or from whole columns of it.
template <bool kFetchesB, class T>
void tile_of_columns(int64_t depth, const TileRows<T>& rows, const T* b,
                     const TileTarget<T>& target, Fetches& fetches) {
  if (target.rows <= kFewRows) {
    tile_of_rows<T, kFewRows, false, kFetchesB>(depth, rows, b, target, fetches);
  } else if (kSomeRows < kTileRows && target.rows <= kSomeRows) {
    tile_of_rows<T, kSomeRows, false, kFetchesB>(depth, rows, b, target, fetches);
  } else {
    tile_of_rows<T, kTileRows, false, kFetchesB>(depth, rows, b, target, fetches);
  }
}

// Products with more columns than these pack A: the first limit applies if its rows are contiguous,
// the second if its columns are. Beyond the limit, A is read more often than packing it would cost.
// Otherwise rows are read in place, because packing them would take as long as multiplying them by
// tens of columns. The limits are lower where packed A passes over B (Zen 3: 256 columns are 6 %
// faster with packed rows, 128 columns 9 to 14 % with packed columns).
constexpr int64_t kMaxColumnsOfRows = kPackedAPasses ? 128 : 768;
constexpr int64_t kMaxColumnsOfColumns = kPackedAPasses ? 64 : 192;
// If columns are farther apart, a tile covers more pages than the TLB holds.
constexpr int64_t kMaxDistanceOfColumns = 256;

template <class T>
bool reads_in_place(const GemmCall<T>& call, int64_t rows) {
  if (rows < kTileRows) return false;
  if (call.a_col == 1) return call.n <= kMaxColumnsOfRows;
  return call.n <= kMaxColumnsOfColumns && call.a_col <= kMaxDistanceOfColumns;
}

template <class T>
void pack_a(const GemmCall<T>& call, GemmRange rows, GemmRange depth, T* packed) {
  const int64_t in_place = reads_in_place(call, rows.size) ? rows.size / kTileRows * kTileRows : 0;
  pack<kTileRows>(call.a + (rows.begin + in_place) * call.a_row + depth.begin * call.a_col,
                  call.a_row, call.a_col, rows.size - in_place, depth.size,
                  packed + in_place * depth.size);
}

template <class T>
void pack_b(const GemmCall<T>& call, GemmRange columns, GemmRange depth, T* packed) {
  pack<kTileColumns<T>>(call.b + depth.begin * call.b_row + columns.begin * call.b_col, call.b_col,
                        call.b_row, columns.size, depth.size, packed);
}

// The rows of A that a tile reads in place, for a Fetcher. Fourteen floats may be on two lines.
template <class T>
GemmAhead next_rows(const GemmCall<T>& call, const T* first, int64_t depth) {
  constexpr int64_t kBytes = sizeof(T);
  if (call.a_col == 1) return {first, kTileRows, depth * kBytes, call.a_row * kBytes};
  return {first, depth, kTileRows * kBytes + kLineBytes, call.a_col * kBytes};
}

template <class T>
void multiply(const GemmCall<T>& call, GemmRange rows, GemmRange columns, GemmRange depth,
              const T* packed_a, const T* packed_b, const GemmAhead& ahead_a,
              const GemmAhead& ahead_b) {
  const T beta = depth.begin == 0 ? call.beta : T{1};
  const T* bias = depth.begin == 0 && call.bias != nullptr ? call.bias + columns.begin : nullptr;
  T* c = call.c + rows.begin * call.ldc + columns.begin;
  const T* a = call.a + rows.begin * call.a_row + depth.begin * call.a_col;
  const int64_t row_steps = divide_up(columns.size, kTileColumns<T>) * divide_up(depth.size, kStep);
  const int64_t steps = row_steps * divide_up(rows.size, kTileRows);
  Fetches fetches{.rows = Fetcher(GemmAhead{}), .a = Fetcher(ahead_a), .b = Fetcher(ahead_b)};
  fetches.a_lines = divide_up(fetches.a.left(), steps);
  fetches.b_lines = divide_up(fetches.b.left(), steps);
  const auto target_at = [&](int64_t i, int64_t j) {
    return TileTarget<T>{c + i * call.ldc + j,
                         call.ldc,
                         rows.size - i,
                         columns.size - j,
                         call.alpha,
                         beta,
                         bias == nullptr ? nullptr : bias + j};
  };
  if (kPackedAPasses && !reads_in_place(call, rows.size)) {
    for (int64_t j = 0; j < columns.size; j += kTileColumns<T>) {
      const T* b = packed_b + j * depth.size;
      for (int64_t i = 0; i < rows.size; i += kTileRows) {
        const TileRows<T> tile_rows{packed_a + i * depth.size, 1, kTileRows};
        if (i == 0) {
          tile_of_columns<true>(depth.size, tile_rows, b, target_at(i, j), fetches);
        } else {
          tile_of_columns<false>(depth.size, tile_rows, b, target_at(i, j), fetches);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < rows.size; i += kTileRows) {
    const bool in_place = reads_in_place(call, rows.size - i);
    const bool strided = in_place && call.a_col == 1;
    const TileRows<T> tile_rows = in_place ? TileRows<T>{a + i * call.a_row, call.a_row, call.a_col}
                                           : TileRows<T>{packed_a + i * depth.size, 1, kTileRows};
    if (in_place) {
      fetches.rows = Fetcher(next_rows(call, a + (i + kTileRows) * call.a_row, depth.size));
      fetches.row_lines = divide_up(fetches.rows.left(), row_steps);
    }
    for (int64_t j = 0; j < columns.size; j += kTileColumns<T>) {
      const T* b = packed_b + j * depth.size;
      if (strided) {
        tile_of_rows<T, kTileRows, true, true>(depth.size, tile_rows, b, target_at(i, j), fetches);
      } else {
        tile_of_columns<true>(depth.size, tile_rows, b, target_at(i, j), fetches);
      }
    }
  }
}

// Measured on Zen 3 (AVX2), whose second-level cache has 512 KiB, and on CPUs with AVX-512, whose
// second-level caches are larger, and where a tile of B does not stay in the first.
constexpr int64_t kMaxDepth = kPackedAPasses ? 512 : 256;
template <class T>
constexpr int64_t kUnitRows =
    (kPackedAPasses ? size_t{144} * 4 / sizeof(T) : 192) / kTileRows* kTileRows;

template <class T>
constexpr GemmKernels<T> kernels() {
  return {.direct = direct<T>,
          .few_rows_product = few_rows::product<T>,
          .few_rows = few_rows::kMaxRows,
          .few_rows_depth = few_rows::kDeep,
          .dots = dots::product<T>,
          .dot_rows = dots::kMaxRows,
          .dot_columns = dots::kMaxColumns,
          .tile_rows = kTileRows,
          .tile_columns = kTileColumns<T>,
          .max_depth = kMaxDepth,
          .unit_rows = kUnitRows<T>,
          .narrow_rows = FLOW_ISA == 1 ? 32 : 0,
          .pack_a = pack_a<T>,
          .pack_b = pack_b<T>,
          .multiply = multiply<T>};
}

}  // namespace

const GemmKernelSet kGemmKernels = {.f32 = kernels<float>(), .f64 = kernels<double>()};

#include "ops/kernel/isa_end.h"
