// Kernels of ops/conv/resample_op.h: products with a sparse matrix along one dim. The forward one
// reads a matrix row for each output, the backward one a row of the transpose for each input.
// Traffic: x is read and y written once; neighbouring rows of the matrix read the same elements.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/resample_op.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/row_loops.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

void register_resample_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 14;

// x as (outer, columns, inner), y as (outer, rows, inner), and the matrix. Row r has the entries
// begins[r] ... begins[r + 1] - 1.
template <class T>
struct ResampleState {
  int64_t outer = 1;
  int64_t columns = 1;
  int64_t rows = 1;
  int64_t inner = 1;
  int64_t entries_per_row = 0;  // 0: rows differ
  std::vector<int64_t> begins;
  std::vector<int64_t> positions;
  std::vector<T> weights;
};

struct Entry {
  int64_t row;
  int64_t column;
  double weight;
};

// The entries of each row follow each other in the order of the taps.
std::vector<Entry> entries_of(const ResampleAttrs& attrs, bool is_transposed) {
  std::vector<Entry> entries;
  const std::vector<Tap> taps = taps_of(attrs);
  entries.reserve(static_cast<size_t>(attrs.out) * taps.size());
  for (int64_t i = 0; i < attrs.out; ++i) {
    const auto at = static_cast<size_t>(i);
    for (const Tap& tap : taps) {
      const double weight = tap.weights.empty() ? 1 : tap.weights[at];
      const int64_t from = tap.positions[at];
      entries.push_back(is_transposed ? Entry{from, i, weight} : Entry{i, from, weight});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.row < b.row; });
  return entries;
}

template <class T>
std::shared_ptr<const ResampleState<T>> prepare(const KernelQuery& query, bool is_transposed) {
  const auto& attrs = query.attrs_as<ResampleAttrs>();
  const Shape& x = query.input(0).local_shape;
  const auto state = std::make_shared<ResampleState<T>>();
  state->columns = is_transposed ? attrs.out : attrs.in;
  state->rows = is_transposed ? attrs.in : attrs.out;
  for (int64_t d = 0; d < x.size(); ++d) {
    if (d != attrs.dim) (d < attrs.dim ? state->outer : state->inner) *= x[d];
  }
  const std::vector<Entry> entries = entries_of(attrs, is_transposed);
  state->begins.assign(static_cast<size_t>(state->rows) + 1, 0);
  for (const Entry& entry : entries) {
    ++state->begins[static_cast<size_t>(entry.row) + 1];
    state->positions.push_back(entry.column);
    state->weights.push_back(static_cast<T>(entry.weight));
  }
  const int64_t first = state->rows == 0 ? 0 : state->begins[1];
  const bool is_even = std::all_of(state->begins.begin() + 1, state->begins.end(),
                                   [&](int64_t count) { return count == first; });
  state->entries_per_row = is_even ? first : 0;
  for (size_t r = 1; r < state->begins.size(); ++r)
    state->begins[r] += state->begins[r - 1];
  return state;
}

// The sum of `count` products weights[k] get(k); the order and the roundings are the same for
// scalars and vectors.
template <class V, class Get>
[[gnu::always_inline]] inline V weighted_sum(int64_t count, const Get& product) {
  if (count == 0) return V{};
  V sum = product(0);
  for (int64_t k = 1; k < count; ++k)
    sum = sum + product(k);
  return sum;
}

// Calls fn(count) with the number of entries as a constant if it is 1, 2 or 4.
template <class Fn>
[[gnu::always_inline]] inline void with_count(int64_t count, const Fn& fn) {
  if (count == 1) {
    fn(std::integral_constant<int64_t, 1>());
  } else if (count == 2) {
    fn(std::integral_constant<int64_t, 2>());
  } else if (count == 4) {
    fn(std::integral_constant<int64_t, 4>());
  } else {
    fn(count);
  }
}

// Lines of single elements.
template <class T>
void resample_line(const ResampleState<T>& state, const T* x, T* y) {
  const auto element = [&](int64_t r, int64_t begin, auto count) {
    const int64_t* const position = state.positions.data() + begin;
    const T* const weight = state.weights.data() + begin;
    y[r] = weighted_sum<T>(count, [&](int64_t k) { return weight[k] * x[position[k]]; });
  };
  if (state.entries_per_row == 0) {
    for (int64_t r = 0; r < state.rows; ++r) {
      const int64_t begin = state.begins[static_cast<size_t>(r)];
      element(r, begin, state.begins[static_cast<size_t>(r) + 1] - begin);
    }
    return;
  }
  with_count(state.entries_per_row, [&](auto count) {
    for (int64_t r = 0; r < state.rows; ++r)
      element(r, r * count, count);
  });
}

// One output row of `inner` elements; x is the slice that its line reads.
template <class T>
void resample_row(const ResampleState<T>& state, int64_t r, const T* x, T* y) {
  using V = Vec<T>;
  const int64_t begin = state.begins[static_cast<size_t>(r)];
  const int64_t* const position = state.positions.data() + begin;
  const T* const weight = state.weights.data() + begin;
  with_count(state.begins[static_cast<size_t>(r) + 1] - begin, [&](auto count) {
    for_row<T>(state.inner, [&](auto at) {
      at.put(y, weighted_sum<V>(count, [&](int64_t k) {
               return V::fill(weight[k]) * at.get(x + position[k] * state.inner);
             }));
    });
  });
}

template <class T>
void run_resample(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ResampleState<T>>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  const int64_t slice = state.columns * state.inner;
  if (state.inner == 1) {
    ctx.pool().parallel_for(0, state.outer, kGrain / std::max<int64_t>(1, state.rows) + 1,
                            [&](int64_t begin, int64_t end) {
                              for (int64_t o = begin; o < end; ++o)
                                resample_line(state, x.data() + o * slice,
                                              y.data() + o * state.rows);
                            });
  } else {
    ctx.pool().parallel_for(0, state.outer * state.rows, kGrain / (state.inner + 1) + 1,
                            [&](int64_t begin, int64_t end) {
                              for (int64_t row = begin; row < end; ++row)
                                resample_row(state, row % state.rows,
                                             x.data() + row / state.rows * slice,
                                             y.data() + row * state.inner);
                            });
  }
  y.finish(ctx);
}

#if FLOW_ISA == 0

// One element at a time, in double.
void resample_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ResampleState<double>>();
  const ContiguousInput<double> x(ctx, 0);
  const ContiguousOutput<double> y(ctx, 0);
  for (int64_t i = 0; i < state.outer * state.rows * state.inner; ++i) {
    const int64_t row = i / state.inner;
    const auto r = static_cast<size_t>(row % state.rows);
    const double* slice = x.data() + row / state.rows * state.columns * state.inner;
    double sum = 0;
    for (auto k = static_cast<size_t>(state.begins[r]);
         k < static_cast<size_t>(state.begins[r + 1]); ++k)
      sum += state.weights[k] * slice[state.positions[k] * state.inner + i % state.inner];
    y.data()[i] = sum;
  }
  y.finish(ctx);
}

#endif

template <class T, bool kTransposed>
KernelChoice choose(const KernelQuery& query, KernelFn fn) {
  const auto& attrs = query.attrs_as<ResampleAttrs>();
  const auto wanted = [&](int64_t size) {
    Shape shape = query.input(0).local_shape;
    shape[attrs.dim] = size;
    return shape;
  };
  if (!(query.input(0).local_shape == wanted(kTransposed ? attrs.out : attrs.in)) ||
      !(query.output(0).local_shape == wanted(kTransposed ? attrs.in : attrs.out))) {
    return {};
  }
  return with_scratch({fn, prepare<T>(query, kTransposed)}, contiguous_scratch(query, dtype_of<T>));
}

template <bool kTransposed>
KernelChoice select_fast(const KernelQuery& query) {
  if (query.input(0).dtype == DType::kFloat64)
    return choose<double, kTransposed>(query, run_resample<double>);
  return choose<float, kTransposed>(query, run_resample<float>);
}

}  // namespace

void register_resample_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kResample, DeviceType::kCpu, {"reference", [](const KernelQuery& query) {
                                            return choose<double, false>(query, resample_plainly);
                                          }});
  table.add(kResampleBackward, DeviceType::kCpu, {"reference", [](const KernelQuery& query) {
                                                    return choose<double, true>(query,
                                                                                resample_plainly);
                                                  }});
#endif
  table.add(kResample, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<false>});
  table.add(kResampleBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<true>});
}

#include "ops/kernel/isa_end.h"
