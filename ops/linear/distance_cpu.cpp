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
  template <class T>
  static void sum_differences(const T* w, const T* a, const T* b, const DistanceState& state,
                              T* y) {
    std::fill_n(y, state.columns, T{0});
    for (int64_t j = 0; j < state.others; ++j) {
      for (int64_t m = 0; m < state.columns; ++m)
        y[m] += w[j] * (a[m] - b[j * state.columns + m]);
    }
  }
};

#endif

// The number of terms after which a sum begins again, so that rounding errors stay small.
constexpr int64_t kStretch = 32;
// The vectors that the same place of a panel of rows fills.
constexpr int64_t kPanelVectors = 4;

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

  // Stretches of rows keep rounding errors small; four sums at a time hide the latency of a step.
  template <class T>
  static void sum_differences(const T* w, const T* a, const T* b, const DistanceState& state,
                              T* y) {
    using V = Vec<T>;
    for_row<T>(state.columns, [&](auto at) {
      const V own = at.get(a);
      const auto add = [&](V part, int64_t j) {
        return fma(V::fill(w[j]), own - at.get(b + j * state.columns), part);
      };
      V total = V::zero();
      for (int64_t begin = 0; begin < state.others; begin += kStretch) {
        V part[4];
        std::fill_n(part, 4, V::zero());
        const int64_t end = std::min(state.others, begin + kStretch);
        int64_t j = begin;
        for (; j + 4 <= end; j += 4) {
          for (int64_t k = 0; k < 4; ++k)
            part[k] = add(part[k], j + k);
        }
        for (; j < end; ++j)
          part[0] = add(part[0], j);
        total = total + ((part[0] + part[1]) + (part[2] + part[3]));
      }
      at.put(y, total);
    });
  }
};

// Calls fn(row of a, first row of b of its batch) in parallel.
template <class Fn>
void for_rows(const KernelContext& ctx, const DistanceState& state, const Fn& fn) {
  const int64_t work = std::max<int64_t>(1, state.others * state.columns);
  ctx.pool().parallel_for(0, state.batch * state.rows, std::max<int64_t>(1, kGrain / work),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row)
                              fn(row, row / state.rows * state.others);
                          });
}

#if FLOW_ISA == 0

void cdist_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<double> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<double> y(ctx, 0);
  for_rows(ctx, state, [&](int64_t row, int64_t first) {
    for (int64_t j = 0; j < state.others; ++j) {
      y.data()[row * state.others + j] = std::sqrt(exact_square(
          a.data() + row * state.columns, b.data() + (first + j) * state.columns, state.columns));
    }
  });
  y.finish(ctx);
}

#endif

// The distances of all rows of `a` from `count` rows of `b`, which are transposed into `panel`.
template <class T>
void run_panel(const T* a, const T* b, const DistanceState& state, int64_t count, T* panel, T* y) {
  constexpr int64_t kWidth = kPanelVectors * Vec<T>::kLanes;
  const int64_t n = state.columns;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t m = 0; m < n; ++m)
      panel[m * kWidth + j] = b[j * n + m];
  }
  int64_t row = 0;
  for (; row + 2 <= state.rows; row += 2)
    ByVectors::distances<2>(a + row * n, panel, b, state, count, y + row * state.others);
  if (row < state.rows)
    ByVectors::distances<1>(a + row * n, panel, b, state, count, y + row * state.others);
}

// Each thread takes panels of rows of b.
template <class T>
void run_cdist(const KernelContext& ctx) {
  constexpr int64_t kWidth = kPanelVectors * Vec<T>::kLanes;
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1);
  const ContiguousOutput<T> y(ctx, 0);
  const int64_t n = state.columns;
  const int64_t panels = (state.others + kWidth - 1) / kWidth;
  const int64_t work = std::max<int64_t>(1, state.rows * kWidth * n);
  const auto run_panels = [&](int64_t begin, int64_t end) {
    std::vector<T> panel(static_cast<size_t>(n * kWidth));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / panels, first = i % panels * kWidth;
      run_panel(a.data() + batch * state.rows * n, b.data() + (batch * state.others + first) * n,
                state, std::min(kWidth, state.others - first), panel.data(),
                y.data() + batch * state.rows * state.others + first);
    }
  };
  ctx.pool().parallel_for(0, state.batch * panels, std::max<int64_t>(1, kGrain / work), run_panels);
  y.finish(ctx);
}

template <class Loops, class T>
void run_differences(const KernelContext& ctx) {
  const auto& state = ctx.state_as<DistanceState>();
  const ContiguousInput<T> w(ctx, 0), a(ctx, 1), b(ctx, 2);
  const ContiguousOutput<T> y(ctx, 0);
  for_rows(ctx, state, [&](int64_t row, int64_t first) {
    Loops::sum_differences(w.data() + row * state.others, a.data() + row * state.columns,
                           b.data() + first * state.columns, state, y.data() + row * state.columns);
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

template <class T>
KernelChoice choose(const KernelQuery& query, KernelFn fn) {
  if (!parts_fit(query)) return {};
  const bool is_cdist = &query.op == &kCdist;
  const auto state =
      std::make_shared<const DistanceState>(is_cdist ? prepare(query.output(0), query.input(0))
                                                     : prepare(query.input(0), query.input(1)));
  return with_scratch({fn, state}, contiguous_scratch(query, dtype_of<T>));
}

template <KernelFn kFloat, KernelFn kDouble>
KernelChoice select_fast(const KernelQuery& query) {
  if (query.input(0).dtype == DType::kFloat64) return choose<double>(query, kDouble);
  return choose<float>(query, kFloat);
}

#if FLOW_ISA == 0

template <KernelFn kDouble>
KernelChoice select_reference(const KernelQuery& query) {
  return choose<double>(query, kDouble);
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
