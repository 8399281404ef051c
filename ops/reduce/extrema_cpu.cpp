// Largest and smallest elements, and their positions.
#include <limits>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/kernel/vector.h"
#include "ops/reduce/extrema_op.h"
#include "ops/reduce/reduce_loops.h"

#include "ops/kernel/isa_begin.h"

void register_extrema_cpu(KernelTable& table);

namespace {

template <class T>
constexpr bool is_float16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// The type in which elements are compared.
template <class T>
using Compared = std::conditional_t<is_float16<T>, float, T>;

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query) {
  return std::make_shared<ReduceState>(
      prepare_reduction(query.input(0), reduced_dims_of(query.op, query.input(0), query.attrs)));
}

// The value that every other value replaces.
template <class T, bool kMax>
constexpr Compared<T> worst() {
  using C = Compared<T>;
  if constexpr (std::is_floating_point_v<C>) {
    return kMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  } else {
    return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  }
}

// Returns true if a replaces b: if it is larger (smaller), or if it is the first NaN.
template <bool kMax, class C>
bool beats(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (a != a) return b == b;
  }
  return kMax ? a > b : a < b;
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

// Extrema of floats, for the loops of reductions.
template <class T, bool kMax>
struct ExtremumFold {
  using Element = T;
  using V = VecOf<T>;
  using Wide = Compared<T>;

  static V start() { return V::fill(wide_start()); }

  static Wide wide_start() { return worst<T, kMax>(); }

  static V keep_first(V v, int64_t n) { return select(Mask<Wide>::first(n), v, start()); }

  static V take(V v) { return v; }

  static V join(V a, V b) { return kMax ? maximum(a, b) : minimum(a, b); }

  static Wide join(Wide a, Wide b) { return beats<kMax>(b, a) ? b : a; }

  static Wide across(V v) { return kMax ? max_of(v) : min_of(v); }

  static void spill(Wide* w, V v) { join(V::load(w), v).store(w); }

  static T end(Wide best, double /*divisor*/) { return T(best); }
};

template <bool kMax>
KernelChoice select_fold(const KernelQuery& query) {
  const DType dtype = query.input(0).dtype;
  if (!is_floating(dtype)) return {};
  auto state = prepare(query);
  const KernelFn fn =
      dispatch_floating(dtype, [&]<class T>() { return fold_loop<ExtremumFold<T, kMax>>(*state); });
  if (fn == nullptr) return {};
  KernelScratch scratch = dispatch_floating(
      dtype, [&]<class T>() { return fold_scratch<ExtremumFold<T, kMax>>(*state); });
  return with_scratch({fn, std::move(state)}, std::move(scratch));
}

}  // namespace

void register_extrema_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_reference(table);
#endif
  table.add(kAmax, DeviceType::kCpu, {FLOW_ISA_NAME, select_fold<true>});
  table.add(kAmin, DeviceType::kCpu, {FLOW_ISA_NAME, select_fold<false>});
}

#include "ops/kernel/isa_end.h"
