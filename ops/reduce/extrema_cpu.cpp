// Largest and smallest elements, and their positions.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/reduce/extrema_op.h"
#include "ops/reduce/folds.h"
#include "ops/reduce/reduce_loops.h"

#include "ops/kernel/isa_begin.h"

void register_extrema_cpu(KernelTable& table);

namespace {

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query) {
  return std::make_shared<ReduceState>(prepare_reduction(query.input(0), reduced_dims_of(query)));
}

#if FLOW_ISA == 0

template <class T, bool kMax>
void find_extremum(const KernelContext& ctx) {
  using C = Compared<T>;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  for (int64_t k = 0; k < state.kept_numel; ++k) {
    const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
    C best = worst<T, kMax>();
    for (int64_t r = 0; r < state.reduced_numel; ++r) {
      const int64_t at = kept.in + reduce_offsets(r, state.reduced.data(), state.num_reduced).in;
      const C value = static_cast<C>(x[at]);
      if (beats<kMax>(value, best)) best = value;
    }
    y[kept.out] = T(best);
  }
}

// Reduces one dim, or all dims in row-major order. The positions are stored in the last output and
// the values, if requested, in the one before it.
template <class T, bool kMax>
void find_position(const KernelContext& ctx) {
  using C = Compared<T>;
  const TensorView& input = ctx.in(0);
  const DimSet reduced = dim_set(ctx.attrs_as<ReduceAttrs>().dims);
  // The dims are not merged, because positions count in the order of the dims.
  std::array<ReduceState::Dim, kMaxDims> kept;
  std::array<ReduceState::Dim, kMaxDims> searched;
  int num_kept = 0;
  int num_searched = 0;
  int64_t kept_numel = 1;
  int64_t searched_numel = 1;
  for (int64_t i = 0; i < input.shape().size(); ++i) {
    const ReduceState::Dim dim{input.shape()[i], input.strides()[i], 0};
    const bool is_searched = (reduced >> i & 1U) != 0;
    (is_searched ? searched_numel : kept_numel) *= dim.size;
    (is_searched ? searched[static_cast<size_t>(num_searched++)]
                 : kept[static_cast<size_t>(num_kept++)]) = dim;
  }
  const T* x = input.as<T>();
  T* values = ctx.outputs.size() > 1 ? ctx.out(0).as<T>() : nullptr;
  auto* positions = ctx.outputs.back().as<int64_t>();
  for (int64_t k = 0; k < kept_numel; ++k) {
    const T* base = x + reduce_offsets(k, kept.data(), num_kept).in;
    int64_t best = 0;
    C best_value = searched_numel > 0 ? static_cast<C>(base[0]) : C{};
    for (int64_t r = 1; r < searched_numel; ++r) {
      const C value = static_cast<C>(base[reduce_offsets(r, searched.data(), num_searched).in]);
      if (!beats<kMax>(value, best_value)) continue;
      best = r;
      best_value = value;
    }
    positions[k] = best;
    if (values != nullptr) values[k] = T(best_value);
  }
}

template <bool kMax>
KernelChoice select_extremum(const KernelQuery& query) {
  const KernelFn fn = dispatch_all(query.input(0).dtype,
                                   []<class T>() -> KernelFn { return find_extremum<T, kMax>; });
  return {fn, prepare(query)};
}

template <bool kMax>
KernelChoice select_position(const KernelQuery& query) {
  const KernelFn fn = dispatch_all(query.input(0).dtype,
                                   []<class T>() -> KernelFn { return find_position<T, kMax>; });
  return {fn, nullptr};
}

void register_reference(KernelTable& table) {
  table.add(kAmax, DeviceType::kCpu, {"reference", select_extremum<true>});
  table.add(kAmin, DeviceType::kCpu, {"reference", select_extremum<false>});
  for (const OpDef* op : {&kMaxDim, &kArgmax})
    table.add(*op, DeviceType::kCpu, {"reference", select_position<true>});
  for (const OpDef* op : {&kMinDim, &kArgmin})
    table.add(*op, DeviceType::kCpu, {"reference", select_position<false>});
}

#endif

// Rows are searched twice only if they may hold a NaN: it would be in the sum of the elements, as
// is the difference of two infinities.
template <class T, bool kMax>
struct RowExtremumFold : ExtremumFold<T, kMax> {
  using Whole = ExtremumFold<T, kMax>;
  using V = typename Whole::V;

  // Without NaN; b where a is one.
  static V better(V a, V b) { return kMax ? max(a, b) : min(a, b); }

  static typename Whole::Wide run(const T* p, int64_t n) {
    constexpr int64_t kLanes = V::kLanes;
    V best0 = Whole::start(), best1 = best0, best2 = best0, best3 = best0;
    V sum0 = V::zero(), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const auto add = [](const T* x, V& best, V& sum) {
      const V v = load(x);
      best = better(v, best);
      sum = sum + v;
    };
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      add(p + i, best0, sum0);
      add(p + i + kLanes, best1, sum1);
      add(p + i + 2 * kLanes, best2, sum2);
      add(p + i + 3 * kLanes, best3, sum3);
    }
    for (; i + kLanes <= n; i += kLanes)
      add(p + i, best0, sum0);
    if (i < n) {
      const V v = load_n(p + i, n - i);
      best1 = better(Whole::keep_first(v, n - i), best1);
      sum1 = sum1 + v;
    }
    if (any(is_nan((sum0 + sum1) + (sum2 + sum3)))) return fold_block<Whole>(p, n);
    return Whole::across(better(better(best0, best1), better(best2, best3)));
  }
};

template <class T, bool kMax>
using FoldOf = std::conditional_t<is_floating(dtype_of<T>), RowExtremumFold<T, kMax>,
                                  IntegerExtremumFold<T, kMax>>;

template <bool kMax>
KernelChoice select_fold(const KernelQuery& query) {
  return dispatch_all(query.input(0).dtype,
                      [&]<class T>() { return choose_loop<FoldOf<T, kMax>>(prepare(query)); });
}

// The first position of `best` in a row that has it; the first NaN if it is NaN.
template <class T>
int64_t position_in_row(const T* row, int64_t n, Compared<T> best) {
  if constexpr (!is_floating(dtype_of<T>)) {
    constexpr int64_t kGroup = 64;
    int64_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
      int found = 0;
      for (int64_t j = 0; j < kGroup; ++j)
        found |= row[i + j] == best ? 1 : 0;
      if (found != 0) break;
    }
    return std::find(row + i, row + n, best) - row;
  } else {
    using V = VecOf<T>;
    const V wanted = V::fill(best);
    const bool is_nan_wanted = best != best;
    const auto found = [&](V v) { return is_nan_wanted ? is_nan(v) : v == wanted; };
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const uint32_t lanes = bits(found(load(row + i)));
      if (lanes != 0) return i + std::countr_zero(lanes);
    }
    const uint32_t lanes = bits(found(load_n(row + i, n - i)) & Mask<Compared<T>>::first(n - i));
    return i + std::countr_zero(lanes);
  }
}

// The state of a search has one searched dim, in row-major order.
template <class T, bool kMax>
void find_position_in_rows(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* values = ctx.outputs.size() > 1 ? ctx.out(0).as<T>() : nullptr;
  auto* positions = ctx.outputs.back().as<int64_t>();
  const int64_t n = state.reduced_numel;
  const int64_t grain = std::max<int64_t>(1, kReducePiece / n);
  ctx.pool().parallel_for(0, state.kept_numel, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
      const Compared<T> best = fold_run<FoldOf<T, kMax>>(x + kept.in, n);
      const int64_t position = position_in_row(x + kept.in, n, best);
      positions[kept.out] = position;
      if (values != nullptr) values[kept.out] = x[kept.in + position];
    }
  });
}

// Each lane of a vector searches a column of its own.
template <class T, bool kMax>
void find_position_in_columns(const KernelContext& ctx) {
  using V = VecOf<T>;
  using C = Compared<T>;
  constexpr int64_t kColumns = 512;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* values = ctx.outputs.size() > 1 ? ctx.out(0).as<T>() : nullptr;
  auto* positions = ctx.outputs.back().as<int64_t>();
  const int outer = state.num_kept - 1;
  const int64_t columns = state.kept[static_cast<size_t>(outer)].size;
  const int64_t strips = (columns + kColumns - 1) / kColumns;
  const int64_t blocks = state.kept_numel / columns * strips;
  const int64_t rows = state.reduced_numel;
  const int64_t stride = rows == 1 ? 0 : state.reduced[0].in_stride;
  const int64_t grain = std::max<int64_t>(1, kReducePiece / (rows * std::min(columns, kColumns)));
  ctx.pool().parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    std::array<C, kColumns + V::kLanes> best;
    std::array<int64_t, kColumns> place;
    for (int64_t block = begin; block < end; ++block) {
      ReduceOffsets at = reduce_offsets(block / strips, state.kept.data(), outer);
      const int64_t first = block % strips * kColumns;
      at.in += first;
      at.out += first;
      const int64_t width = std::min(kColumns, columns - first);
      for (int64_t c = 0; c < width; c += V::kLanes) {
        const T* column = x + at.in + c;
        const int64_t lanes = std::min<int64_t>(V::kLanes, width - c);
        const auto read = [&](const T* p) {
          return lanes == V::kLanes ? load(p) : load_n(p, lanes);
        };
        V found = read(column);
        for (int64_t lane = 0; lane < lanes; ++lane)
          place[static_cast<size_t>(c + lane)] = 0;
        for (int64_t r = 1; r < rows; ++r) {
          const V v = read(column + r * stride);
          const auto better = (kMax ? v > found : v < found) | (is_nan(v) & (found == found));
          uint32_t left = bits(better);
          if (left == 0) continue;  // most rows
          found = select(better, v, found);
          for (; left != 0; left &= left - 1) {
            const int64_t lane = std::countr_zero(left);
            if (lane < lanes) place[static_cast<size_t>(c + lane)] = r;
          }
        }
        found.store(best.data() + c);
      }
      for (int64_t c = 0; c < width; ++c) {
        const auto i = static_cast<size_t>(c);
        positions[at.out + c] = place[i];
        if (values != nullptr) values[at.out + c] = T(best[i]);
      }
    }
  });
}

// Searches along one dim, or in all elements of a tensor in row-major order.
template <bool kMax>
KernelChoice select_position_fast(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const DimSet dims = dim_set(query.attrs_as<ReduceAttrs>().dims);
  auto state = std::make_shared<ReduceState>(prepare_reduction(x, dims));
  if (state->kept_numel == 0 || state->reduced_numel == 0) return {};
  if (state->num_reduced > 1 || (std::popcount(dims) > 1 && !x.is_contiguous)) return {};
  const KernelFn fn = dispatch_all(x.dtype, [&]<class T>() -> KernelFn {
    if (state->has_rows) return find_position_in_rows<T, kMax>;
    if constexpr (is_floating(dtype_of<T>)) {
      if (state->has_columns) return find_position_in_columns<T, kMax>;
    }
    return nullptr;
  });
  if (fn == nullptr) return {};
  return {fn, std::move(state)};
}

}  // namespace

void register_extrema_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_reference(table);
#endif
  table.add(kAmax, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_fold<true>>});
  table.add(kAmin, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_fold<false>>});
  for (const OpDef* op : {&kMaxDim, &kArgmax})
    table.add(*op, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_position_fast<true>>});
  for (const OpDef* op : {&kMinDim, &kArgmin})
    table.add(*op, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_position_fast<false>>});
}

#include "ops/kernel/isa_end.h"
