// The loops of fast reductions, for a Fold of vectors (ops/reduce/folds.h). The order of a result's
// elements is fixed by the shape: pieces of constant size are folded apart, on any thread, and
// joined in order. Within a piece, blocks of a few thousand elements go through vector accumulators
// that are joined as a tree.
//
//   Element, Result what memory holds before and after
//   Wide            what pieces are joined in (double for sums)
//   Sums            one or two vectors with a lane for each lane of a vector V = VecOf<Element>
//   start(), wide_start()   the neutral elements of Sums and of Wide
//   take(V v) -> Sums       what the elements v contribute
//   keep_first(Sums s, n)   s with neutral lanes in place of the zeros past n
//   join(Sums, Sums), join(Wide, Wide), across(Sums) -> Wide
//   spill(Wide* w, Sums s)  w[i] = join(w[i], lane i)
//   end(Wide, divisor) -> Result
//
// A Fold without Sums is one of single elements: take(Element) -> Wide, wide_start(), join(Wide,
// Wide) and end(). The compiler makes vectors of a fixed number of lanes from it. A Fold may have a
// loop of its own over n contiguous elements: run(p, n) -> Wide.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/vector.h"
#include "ops/reduce/reduce_op.h"

#include "ops/kernel/isa_begin.h"

// The offsets of the element at a given row-major position among some dims.
struct ReduceOffsets {
  int64_t in = 0;
  int64_t out = 0;
};

inline ReduceOffsets reduce_offsets(int64_t index, const ReduceState::Dim* dims, int count) {
  ReduceOffsets offsets;
  for (int d = count - 1; d >= 0; --d) {
    const int64_t i = d == 0 ? index : index % dims[d].size;
    if (d > 0) index /= dims[d].size;
    offsets.in += i * dims[d].in_stride;
    offsets.out += i * dims[d].out_stride;
  }
  return offsets;
}

inline constexpr int64_t kReducePiece = 65536;        // elements
inline constexpr int64_t kReduceColumnPiece = 65536;  // elements
inline constexpr int64_t kReduceColumns = 2048;       // columns folded together
inline constexpr int64_t kReduceRows = 16;            // rows added before they are spilled

// The number of pieces into which a reduction over `rows` rows of n elements is divided.
inline int64_t row_pieces(int64_t rows, int64_t n) {
  const int64_t per_row = (n + kReducePiece - 1) / kReducePiece;
  const int64_t rows_per_piece = std::max<int64_t>(1, kReducePiece / n);
  return per_row > 1 ? rows * per_row : (rows + rows_per_piece - 1) / rows_per_piece;
}

// The same for a reduction that adds up `rows` rows column by column.
inline int64_t column_pieces(int64_t rows, int64_t columns) {
  const int64_t per_piece =
      std::max(kReduceRows, kReduceColumnPiece / std::min(columns, kReduceColumns));
  return (rows + per_piece - 1) / per_piece;
}

template <class Fold>
concept HasVectors = requires {
  typename Fold::Sums;
};

// What is added to an array of columns to make it whole vectors.
template <class Fold>
constexpr int64_t fold_padding() {
  if constexpr (HasVectors<Fold>) {
    return VecOf<typename Fold::Element>::kLanes;
  } else {
    return 0;
  }
}

template <class Fold>
inline typename Fold::Wide fold_block(const typename Fold::Element* p, int64_t n) {
  using Sums = typename Fold::Sums;
  constexpr int64_t kLanes = VecOf<typename Fold::Element>::kLanes;
  Sums a0 = Fold::start(), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  int64_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes) {
    a0 = Fold::join(a0, Fold::take(load(p + i)));
    a1 = Fold::join(a1, Fold::take(load(p + i + kLanes)));
    a2 = Fold::join(a2, Fold::take(load(p + i + 2 * kLanes)));
    a3 = Fold::join(a3, Fold::take(load(p + i + 3 * kLanes)));
    a4 = Fold::join(a4, Fold::take(load(p + i + 4 * kLanes)));
    a5 = Fold::join(a5, Fold::take(load(p + i + 5 * kLanes)));
    a6 = Fold::join(a6, Fold::take(load(p + i + 6 * kLanes)));
    a7 = Fold::join(a7, Fold::take(load(p + i + 7 * kLanes)));
  }
  for (; i + kLanes <= n; i += kLanes)
    a0 = Fold::join(a0, Fold::take(load(p + i)));
  if (i < n) a1 = Fold::join(a1, Fold::keep_first(Fold::take(load_n(p + i, n - i)), n - i));
  return Fold::across(Fold::join(Fold::join(Fold::join(a0, a1), Fold::join(a2, a3)),
                                 Fold::join(Fold::join(a4, a5), Fold::join(a6, a7))));
}

template <class Fold>
inline typename Fold::Wide fold_lanes(const typename Fold::Element* p, int64_t n) {
  constexpr int64_t kLanes = 64;
  std::array<typename Fold::Wide, kLanes> lanes;
  lanes.fill(Fold::wide_start());
  for (; n > 0; n -= kLanes, p += kLanes) {
    if (n >= kLanes) {
      for (size_t lane = 0; lane < lanes.size(); ++lane)
        lanes[lane] = Fold::join(lanes[lane], Fold::take(p[lane]));
    } else {
      for (size_t lane = 0; lane < static_cast<size_t>(n); ++lane)
        lanes[lane] = Fold::join(lanes[lane], Fold::take(p[lane]));
    }
  }
  for (size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane)
      lanes[lane] = Fold::join(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

template <class Fold>
inline typename Fold::Wide fold_run(const typename Fold::Element* p, int64_t n) {
  if constexpr (requires { Fold::run(p, n); }) {
    return Fold::run(p, n);
  } else if constexpr (HasVectors<Fold>) {
    constexpr int64_t kBlock = 16 * 8 * VecOf<typename Fold::Element>::kLanes;
    typename Fold::Wide sum = Fold::wide_start();
    for (; n > 0; n -= kBlock, p += kBlock)
      sum = Fold::join(sum, fold_block<Fold>(p, std::min(n, kBlock)));
    return sum;
  } else {
    return fold_lanes<Fold>(p, n);
  }
}

// Reductions whose innermost dim is reduced and contiguous.
template <class Fold>
void fold_rows(const KernelContext& ctx) {
  using T = typename Fold::Element;
  using Wide = typename Fold::Wide;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Fold::Result>();
  const int outer = state.num_reduced - 1;
  const int64_t n = state.reduced[static_cast<size_t>(outer)].size;
  const int64_t rows = state.reduced_numel / n;
  const int64_t per_row = (n + kReducePiece - 1) / kReducePiece;
  const int64_t rows_per_piece = std::max<int64_t>(1, kReducePiece / n);
  const int64_t pieces = row_pieces(rows, n);

  const auto fold_piece = [&](int64_t kept, int64_t piece) {
    const T* base = x + reduce_offsets(kept, state.kept.data(), state.num_kept).in;
    if (per_row > 1) {
      const T* row = base + reduce_offsets(piece / per_row, state.reduced.data(), outer).in;
      const int64_t begin = piece % per_row * kReducePiece;
      return fold_run<Fold>(row + begin, std::min(kReducePiece, n - begin));
    }
    Wide sum = Fold::wide_start();
    const int64_t end = std::min(rows, (piece + 1) * rows_per_piece);
    for (int64_t row = piece * rows_per_piece; row < end; ++row) {
      sum = Fold::join(
          sum, fold_run<Fold>(base + reduce_offsets(row, state.reduced.data(), outer).in, n));
    }
    return sum;
  };
  const auto store = [&](int64_t kept, Wide sum) {
    y[reduce_offsets(kept, state.kept.data(), state.num_kept).out] = Fold::end(sum, state.divisor);
  };

  if (pieces == 1) {
    const int64_t grain = std::max<int64_t>(1, kReducePiece / state.reduced_numel);
    ctx.pool().parallel_for(0, state.kept_numel, grain, [&](int64_t begin, int64_t end) {
      for (int64_t kept = begin; kept < end; ++kept)
        store(kept, fold_piece(kept, 0));
    });
    return;
  }
  const Ref<Storage> scratch =
      ctx.scratch(static_cast<size_t>(state.kept_numel * pieces) * sizeof(Wide));
  auto* partial = reinterpret_cast<Wide*>(scratch->data());
  ctx.pool().parallel_for(0, state.kept_numel * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      partial[i] = fold_piece(i / pieces, i % pieces);
  });
  for (int64_t kept = 0; kept < state.kept_numel; ++kept) {
    Wide sum = Fold::wide_start();
    for (int64_t piece = 0; piece < pieces; ++piece)
      sum = Fold::join(sum, partial[kept * pieces + piece]);
    store(kept, sum);
  }
}

// sums[0, columns) = rows[0, count) folded into it, column by column. sums is padded to vectors.
template <class Fold>
inline void fold_row_group(const std::array<const typename Fold::Element*, kReduceRows>& rows,
                           int64_t count, int64_t columns, typename Fold::Wide* sums) {
  using Sums = typename Fold::Sums;
  constexpr int64_t kLanes = VecOf<typename Fold::Element>::kLanes;
  int64_t c = 0;
  for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
    Sums a = Fold::start();
    Sums b = a;
    for (int64_t r = 0; r < count; ++r) {
      const auto* row = rows[static_cast<size_t>(r)] + c;
      a = Fold::join(a, Fold::take(load(row)));
      b = Fold::join(b, Fold::take(load(row + kLanes)));
    }
    Fold::spill(sums + c, a);
    Fold::spill(sums + c + kLanes, b);
  }
  for (; c < columns; c += kLanes) {
    Sums a = Fold::start();
    for (int64_t r = 0; r < count; ++r) {
      const auto* row = rows[static_cast<size_t>(r)] + c;
      a = Fold::join(a, c + kLanes <= columns
                            ? Fold::take(load(row))
                            : Fold::keep_first(Fold::take(load_n(row, columns - c)), columns - c));
    }
    Fold::spill(sums + c, a);
  }
}

// The same for a Fold of single elements, four rows at a time.
template <class Fold>
inline void fold_lanes_group(const std::array<const typename Fold::Element*, kReduceRows>& rows,
                             int64_t count, int64_t columns, typename Fold::Wide* __restrict sums) {
  size_t r = 0;
  for (; r + 4 <= static_cast<size_t>(count); r += 4) {
    const auto* x0 = rows[r];
    const auto* x1 = rows[r + 1];
    const auto* x2 = rows[r + 2];
    const auto* x3 = rows[r + 3];
    for (int64_t c = 0; c < columns; ++c) {
      const auto low = Fold::join(Fold::take(x0[c]), Fold::take(x1[c]));
      const auto high = Fold::join(Fold::take(x2[c]), Fold::take(x3[c]));
      sums[c] = Fold::join(sums[c], Fold::join(low, high));
    }
  }
  for (; r < static_cast<size_t>(count); ++r) {
    const auto* x = rows[r];
    for (int64_t c = 0; c < columns; ++c)
      sums[c] = Fold::join(sums[c], Fold::take(x[c]));
  }
}

// Reductions whose innermost dim is kept and contiguous in input and output: whole rows are added
// up, for a strip of columns at a time.
template <class Fold>
void fold_columns(const KernelContext& ctx) {
  using T = typename Fold::Element;
  using Wide = typename Fold::Wide;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Fold::Result>();
  const int outer = state.num_kept - 1;
  const int64_t columns = state.kept[static_cast<size_t>(outer)].size;
  const int64_t strips = (columns + kReduceColumns - 1) / kReduceColumns;
  const int64_t blocks = state.kept_numel / columns * strips;
  const int64_t rows = state.reduced_numel;
  const int64_t rows_per_piece =
      std::max(kReduceRows, kReduceColumnPiece / std::min(columns, kReduceColumns));
  const int64_t pieces = column_pieces(rows, columns);

  struct Strip {
    ReduceOffsets at;
    int64_t columns;
  };

  const auto strip_of = [&](int64_t block) {
    Strip strip{reduce_offsets(block / strips, state.kept.data(), outer), 0};
    const int64_t begin = block % strips * kReduceColumns;
    strip.at.in += begin;
    strip.at.out += begin;
    strip.columns = std::min(kReduceColumns, columns - begin);
    return strip;
  };
  const auto fold_piece = [&](const Strip& strip, int64_t piece, Wide* sums) {
    std::fill_n(sums, strip.columns + fold_padding<Fold>(), Fold::wide_start());
    const int64_t end = std::min(rows, (piece + 1) * rows_per_piece);
    std::array<const T*, kReduceRows> group;
    for (int64_t row = piece * rows_per_piece; row < end; row += kReduceRows) {
      const int64_t count = std::min(kReduceRows, end - row);
      for (int64_t r = 0; r < count; ++r) {
        group[static_cast<size_t>(r)] =
            x + strip.at.in + reduce_offsets(row + r, state.reduced.data(), state.num_reduced).in;
      }
      if constexpr (HasVectors<Fold>) {
        fold_row_group<Fold>(group, count, strip.columns, sums);
      } else {
        fold_lanes_group<Fold>(group, count, strip.columns, sums);
      }
    }
  };
  const auto store = [&](const Strip& strip, const Wide* sums) {
    for (int64_t c = 0; c < strip.columns; ++c)
      y[strip.at.out + c] = Fold::end(sums[c], state.divisor);
  };

  constexpr int64_t kPadded = kReduceColumns + fold_padding<Fold>();
  if (pieces == 1) {
    const int64_t grain =
        std::max<int64_t>(1, kReducePiece / (rows * std::min(columns, kReduceColumns)));
    ctx.pool().parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      std::array<Wide, kPadded> sums;
      for (int64_t block = begin; block < end; ++block) {
        const Strip strip = strip_of(block);
        fold_piece(strip, 0, sums.data());
        store(strip, sums.data());
      }
    });
    return;
  }
  const Ref<Storage> scratch =
      ctx.scratch(static_cast<size_t>(blocks * pieces * kPadded) * sizeof(Wide));
  auto* partial = reinterpret_cast<Wide*>(scratch->data());
  ctx.pool().parallel_for(0, blocks * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      fold_piece(strip_of(i / pieces), i % pieces, partial + i * kPadded);
  });
  for (int64_t block = 0; block < blocks; ++block) {
    const Strip strip = strip_of(block);
    Wide* sums = partial + block * pieces * kPadded;
    for (int64_t piece = 1; piece < pieces; ++piece) {
      const Wide* more = sums + piece * kPadded;
      for (int64_t c = 0; c < strip.columns; ++c)
        sums[c] = Fold::join(sums[c], more[c]);
    }
    store(strip, sums);
  }
}

// The scratch memory that the loop needs while it runs.
template <class Fold>
KernelScratch fold_scratch(const ReduceState& state) {
  const auto wide = static_cast<int64_t>(sizeof(typename Fold::Wide));
  if (state.has_rows) {
    const int64_t n = state.reduced[static_cast<size_t>(state.num_reduced - 1)].size;
    const int64_t pieces = row_pieces(state.reduced_numel / n, n);
    if (pieces > 1) return {{state.kept_numel * pieces * wide}};
  } else if (state.has_columns) {
    const int64_t columns = state.kept[static_cast<size_t>(state.num_kept - 1)].size;
    const int64_t strips = (columns + kReduceColumns - 1) / kReduceColumns;
    const int64_t pieces = column_pieces(state.reduced_numel, columns);
    constexpr int64_t kPadded = kReduceColumns + fold_padding<Fold>();
    if (pieces > 1) return {{state.kept_numel / columns * strips * pieces * kPadded * wide}};
  }
  return {};
}

// Returns the loop that fits the state, or null if no loop does.
template <class Fold>
KernelFn fold_loop(const ReduceState& state) {
  if (state.kept_numel == 0 || state.reduced_numel == 0) return nullptr;
  return state.has_rows ? fold_rows<Fold> : state.has_columns ? fold_columns<Fold> : nullptr;
}

// The kernel of a reduction that Fold computes; no choice if no loop fits.
template <class Fold>
KernelChoice choose_loop(std::shared_ptr<const ReduceState> state) {
  const KernelFn fn = fold_loop<Fold>(*state);
  if (fn == nullptr) return {};
  KernelScratch scratch = fold_scratch<Fold>(*state);
  return with_scratch({fn, std::move(state)}, std::move(scratch));
}

// The same for a Fold of floats of the input's dtype; no choice for other dtypes.
template <template <class> class Fold>
KernelChoice choose_fold(const KernelQuery& query, std::shared_ptr<const ReduceState> state) {
  const DType dtype = query.input(0).dtype;
  if (!is_floating(dtype)) return {};
  return dispatch_floating(dtype,
                           [&]<class T>() { return choose_loop<Fold<T>>(std::move(state)); });
}

#include "ops/kernel/isa_end.h"
