// Distances between rows on the CPU. No difference is stored: rows of b stay in cache while the
// rows of a pass by.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/divide_up.h"
#include "ops/kernel/row_loops.h"
#include "ops/linear/distance_op.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

void register_distance_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 15;

// Rows of a (batch, rows, columns) meet `others` rows of b.
struct DistanceState {
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t others = 0;
  int64_t columns = 0;
};

// The sum of squares in double, for those that are too large or too small for T.
template <class T>
double exact_square(const T* a, const T* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    total += d * d;
  }
  return total;
}

#if FLOW_ISA == 0

struct OneByOne {
  template <int64_t kRows, class T>
  static void sum_differences(const T* w, const T* a, const T* b, const DistanceState& state,
                              T* y) {
    std::fill_n(y, kRows * state.columns, T{0});
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t j = 0; j < state.others; ++j) {
        for (int64_t m = 0; m < state.columns; ++m) {
          y[r * state.columns + m] +=
              w[r * state.others + j] * (a[r * state.columns + m] - b[j * state.columns + m]);
        }
      }
    }
  }
};

#endif

// The number of terms after which a sum begins again, so that rounding errors stay small.
constexpr int64_t kStretch = 32;
// The vectors that the same place of a panel of rows fills.
constexpr int64_t kPanelVectors = 4;
// Rows of a whose differences from rows of b are summed together.
constexpr int64_t kSummedRows = 6;

struct ByVectors {
  // The squared distances of kRows rows of a from the rows of a panel. One vector holds a place of
  // kLanes rows of b, so that a sum needs no steps across lanes.
  template <int64_t kRows, class T>
  static void squares(const T* a, const T* panel, int64_t n,
                      Vec<T> (&total)[kRows][kPanelVectors]) {
    using V = Vec<T>;
    constexpr int64_t kLanes = V::kLanes;
    for (auto& row : total)
      std::fill_n(row, kPanelVectors, V::zero());
    for (int64_t begin = 0; begin < n; begin += kStretch) {
      V part[kRows][kPanelVectors];
      for (auto& row : part)
        std::fill_n(row, kPanelVectors, V::zero());
      for (int64_t m = begin; m < std::min(n, begin + kStretch); ++m) {
        V other[kPanelVectors];
        for (int64_t v = 0; v < kPanelVectors; ++v)
          other[v] = load(panel + (m * kPanelVectors + v) * kLanes);
        for (int64_t r = 0; r < kRows; ++r) {
          const V own = V::fill(a[r * n + m]);
          for (int64_t v = 0; v < kPanelVectors; ++v) {
            const V d = own - other[v];
            part[r][v] = fma(d, d, part[r][v]);
          }
        }
      }
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t v = 0; v < kPanelVectors; ++v)
          total[r][v] = total[r][v] + part[r][v];
      }
    }
  }

  // The distances from the first `count` rows of a panel, which are those of b, given their
  // squares. Sums that are too large or too small for T are taken again.
  template <class T>
  static void store_roots(const Vec<T>* squares, const T* a, const T* b, int64_t count, int64_t n,
                          T* y) {
    using V = Vec<T>;
    constexpr int64_t kLanes = V::kLanes;
    const V least = V::fill(T(1e-30)), most = V::fill(T(1e30));
    for (int64_t v = 0; v * kLanes < count; ++v) {
      const int64_t lanes = std::min(kLanes, count - v * kLanes);
      T* const to = y + v * kLanes;
      const V root = sqrt(squares[v]);
      if (lanes == kLanes) {
        store(to, root);
      } else {
        store_n(to, lanes, root);
      }
      const uint32_t usual = bits((squares[v] > least) & (squares[v] < most));
      for (int64_t j = 0; usual != bits(Mask<T>::first(kLanes)) && j < lanes; ++j) {
        if ((usual >> j & 1U) != 0) continue;
        to[j] = static_cast<T>(std::sqrt(exact_square(a, b + (v * kLanes + j) * n, n)));
      }
    }
  }

  template <int64_t kRows, class T>
  static void distances(const T* a, const T* panel, const T* b, const DistanceState& state,
                        int64_t count, T* y) {
    Vec<T> total[kRows][kPanelVectors];
    squares<kRows>(a, panel, state.columns, total);
    for (int64_t r = 0; r < kRows; ++r)
      store_roots(total[r], a + r * state.columns, b, count, state.columns, y + r * state.others);
  }

  // Adds the differences of kRows rows of a from the rows [begin, end) of b to y, at one place of a
  // row. A vector of b serves all kRows rows, whose sums are independent.
  template <int64_t kRows, class T, class At>
  static void add_stretch(const T* w, const T* a, const T* b, const DistanceState& state,
                          int64_t begin, int64_t end, At at, T* y) {
    using V = Vec<T>;
    V own[kRows], part[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      own[r] = at.get(a + r * state.columns);
      part[r] = V::zero();
    }
    for (int64_t j = begin; j < end; ++j) {
      const V other = at.get(b + j * state.columns);
      for (int64_t r = 0; r < kRows; ++r)
        part[r] = fma(V::fill(w[r * state.others + j]), own[r] - other, part[r]);
    }
    for (int64_t r = 0; r < kRows; ++r)
      at.put(y + r * state.columns, at.get(y + r * state.columns) + part[r]);
  }

  // Stretches of rows keep rounding errors small, and the rows of a stretch stay in the first-level
  // cache.
  template <int64_t kRows, class T>
  static void sum_differences(const T* w, const T* a, const T* b, const DistanceState& state,
                              T* y) {
    std::fill_n(y, kRows * state.columns, T{0});
    for (int64_t begin = 0; begin < state.others; begin += kStretch) {
      const int64_t end = std::min(state.others, begin + kStretch);
      for_row<T>(state.columns,
                 [&](auto at) { add_stretch<kRows>(w, a, b, state, begin, end, at, y); });
    }
  }
};

// Calls fn(row of a, first row of b of its batch, number of rows) for groups of at most kRows rows
// of a batch in parallel.
template <int64_t kRows, class Fn>
void for_rows(const KernelContext& ctx, const DistanceState& state, const Fn& fn) {
  const int64_t groups = divide_up(state.rows, kRows);
  const int64_t work = std::max<int64_t>(1, kRows * state.others * state.columns);
  ctx.pool().parallel_for(0, state.batch * groups, std::max<int64_t>(1, kGrain / work),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const int64_t batch = i / groups, first = i % groups * kRows;
                              fn(batch * state.rows + first, batch * state.others,
                                 std::min(kRows, state.rows - first));
                            }
                          });
}

#if FLOW_ISA == 0

void cdist_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<double> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<double> y(ctx, 0);
  for_rows<1>(ctx, state, [&](int64_t row, int64_t first, int64_t /*rows*/) {
    for (int64_t j = 0; j < state.others; ++j) {
      y.data()[row * state.others + j] = std::sqrt(exact_square(
          a.data() + row * state.columns, b.data() + (first + j) * state.columns, state.columns));
    }
  });
  y.finish(ctx);
}

#endif

// Rows of a that meet a panel while it is in the first-level cache, and then the next panel, so
// that rows of y are written from left to right.
constexpr int64_t kRowsAtOnce = 16;

template <class T>
constexpr int64_t kPanelRows = kPanelVectors* Vec<T>::kLanes;

// The rows of b as panels: each is the transpose of kPanelRows rows.
template <class T>
int64_t panels_bytes(const DistanceState& state) {
  return state.batch * divide_up(state.others, kPanelRows<T>) * kPanelRows<T> * state.columns *
         static_cast<int64_t>(sizeof(T));
}

template <class T>
void pack_panel(const T* b, int64_t count, int64_t n, T* panel) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t m = 0; m < n; ++m)
      panel[m * kPanelRows<T> + j] = b[j * n + m];
  }
  for (int64_t m = 0; m < n; ++m)
    std::fill(panel + m * kPanelRows<T> + count, panel + (m + 1) * kPanelRows<T>, T{0});
}

// The distances of `rows` rows of a from the rows of b, which are also in panels.
template <class T>
void run_rows(const T* a, int64_t rows, const T* panels, const T* b, const DistanceState& state,
              T* y) {
  const int64_t n = state.columns;
  for (int64_t first = 0; first < state.others; first += kPanelRows<T>) {
    const int64_t count = std::min(kPanelRows<T>, state.others - first);
    const T* panel = panels + first * n;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) {
      ByVectors::distances<2>(a + row * n, panel, b + first * n, state, count,
                              y + row * state.others + first);
    }
    if (row < rows) {
      ByVectors::distances<1>(a + row * n, panel, b + first * n, state, count,
                              y + row * state.others + first);
    }
  }
}

template <class T>
void run_cdist(const KernelContext& ctx) {
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<T> y(ctx, 0);
  const int64_t n = state.columns;
  const int64_t num_panels = divide_up(state.others, kPanelRows<T>);
  const int64_t num_blocks = divide_up(state.rows, kRowsAtOnce);
  const Ref<Storage> memory = ctx.scratch(static_cast<size_t>(panels_bytes<T>(state)));
  T* const panels = reinterpret_cast<T*>(memory->data());
  const auto grain = [](int64_t work) { return std::max<int64_t>(1, kGrain / (work + 1)); };
  ctx.pool().parallel_for(0, state.batch * num_panels, grain(kPanelRows<T> * n),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const int64_t first = i % num_panels * kPanelRows<T>;
                              pack_panel(b.data() + (i / num_panels * state.others + first) * n,
                                         std::min(kPanelRows<T>, state.others - first), n,
                                         panels + i * kPanelRows<T> * n);
                            }
                          });
  ctx.pool().parallel_for(
      0, state.batch * num_blocks, grain(kRowsAtOnce * state.others * n),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t batch = i / num_blocks, first = i % num_blocks * kRowsAtOnce;
          const int64_t row = batch * state.rows + first;
          run_rows(a.data() + row * n, std::min(kRowsAtOnce, state.rows - first),
                   panels + batch * num_panels * kPanelRows<T> * n,
                   b.data() + batch * state.others * n, state, y.data() + row * state.others);
        }
      });
  y.finish(ctx);
}

template <class Loops, class T>
void run_differences(const KernelContext& ctx) {
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<T> w(ctx, 0), a(ctx, 1), b(ctx, 2);
  const ContiguousOutput<T> y(ctx, 0);
  for_rows<kSummedRows>(ctx, state, [&](int64_t row, int64_t first, int64_t rows) {
    const auto sum = [&]<int64_t kRows>(int64_t at) {
      Loops::template sum_differences<kRows>(
          w.data() + at * state.others, a.data() + at * state.columns,
          b.data() + first * state.columns, state, y.data() + at * state.columns);
    };
    if (rows == kSummedRows) return sum.template operator()<kSummedRows>(row);
    for (int64_t i = row; i < row + rows; ++i)
      sum.template operator()<1>(i);
  });
  y.finish(ctx);
}

// `pairs` has the shape (…, rows, others), `a` the shape (…, rows, columns).
DistanceState prepare(const TensorMeta& pairs, const TensorMeta& a) {
  const Shape& shape = pairs.local_shape;
  DistanceState state;
  for (int64_t i = 0; i + 2 < shape.size(); ++i)
    state.batch *= shape[i];
  state.rows = shape[shape.size() - 2];
  state.others = shape[shape.size() - 1];
  state.columns = a.local_shape.back();
  return state;
}

// Fast kernels of cdist have panels.
template <class T>
KernelChoice choose(const KernelQuery& query, KernelFn fn, bool is_fast) {
  if (!parts_fit(query)) return {};
  const bool is_cdist = &query.op == &kCdist;
  const auto state =
      std::make_shared<const DistanceState>(is_cdist ? prepare(query.output(0), query.input(0))
                                                     : prepare(query.input(0), query.input(1)));
  KernelScratch scratch = contiguous_scratch(query, dtype_of<T>);
  if (is_cdist && is_fast) scratch.push_back({panels_bytes<T>(*state)});
  return with_scratch({fn, state}, scratch);
}

template <KernelFn kFloat, KernelFn kDouble>
KernelChoice select_fast(const KernelQuery& query) {
  if (query.input(0).dtype == DType::kFloat64) return choose<double>(query, kDouble, true);
  return choose<float>(query, kFloat, true);
}

#if FLOW_ISA == 0

template <KernelFn kDouble>
KernelChoice select_reference(const KernelQuery& query) {
  return choose<double>(query, kDouble, false);
}

#endif

}  // namespace

void register_distance_cpu(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
#if FLOW_ISA == 0
  table.add(kCdist, kCpu, {"reference", select_reference<cdist_plainly>});
  table.add(kSumDifferences, kCpu,
            {"reference", select_reference<run_differences<OneByOne, double>>});
#endif
  table.add(kCdist, kCpu, {FLOW_ISA_NAME, select_fast<run_cdist<float>, run_cdist<double>>});
  table.add(kSumDifferences, kCpu,
            {FLOW_ISA_NAME,
             select_fast<run_differences<ByVectors, float>, run_differences<ByVectors, double>>});
}

#include "ops/kernel/isa_end.h"
