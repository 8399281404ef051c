// Largest and smallest elements and their positions on CUDA devices. A team of threads computes
// each result.
#include "ops/reduce/extrema_op.h"
#include "ops/reduce/reduced_places_cuda.cuh"

namespace flow::ops {

void register_extrema_cuda(KernelTable& table);

namespace {

// The value that every other value replaces.
template <class T, bool kMax>
constexpr Wide<T> worst() {
  using C = Wide<T>;
  if constexpr (std::is_floating_point_v<C>) {
    return kMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  } else {
    return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  }
}

// Returns true if a replaces b: if it is larger (smaller), or if it is the first NaN.
template <bool kMax, class C>
__device__ bool beats(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (a != a) return b == b;
  }
  return kMax ? a > b : a < b;
}

// Shuffles do not support bool and single bytes.
template <class C>
using Shuffled = std::conditional_t<std::is_integral_v<C>, int64_t, C>;

template <class T, bool kMax>
struct FindExtremum {
  const T* x;
  T* y;
  ReducedPlaces places;

  __device__ void operator()(int64_t k, Team team) const {
    using C = Shuffled<Wide<T>>;
    const T* base = x + places.kept_in(k);
    C best = static_cast<C>(worst<T, kMax>());
    for (int64_t r = team.first(); r < places.reduced_numel; r += team.step()) {
      const C value = static_cast<C>(widen(base[places.reduced(r)]));
      if (beats<kMax>(value, best)) best = value;
    }
    best = team.reduce(best, [](C a, C b) { return beats<kMax>(b, a) ? b : a; });
    if (team.leads()) y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(best));
  }
};

template <class C>
struct Candidate {
  C value;
  int64_t position;  // -1: none
};

template <bool kMax, class C>
__device__ Candidate<C> better(const Candidate<C>& a, const Candidate<C>& b) {
  if (a.position < 0) return b;
  if (b.position < 0) return a;
  if (beats<kMax>(b.value, a.value)) return b;
  if (beats<kMax>(a.value, b.value)) return a;
  return a.position < b.position ? a : b;
}

// The dims that are searched are not merged, because positions count in their order. Results are
// stored in row-major order.
template <class T, bool kMax>
struct FindPosition {
  const T* x;
  T* values;  // null if not requested
  int64_t* positions;
  Places kept;
  Places searched;
  int64_t searched_numel;

  __device__ void operator()(int64_t k, Team team) const {
    using C = Shuffled<Wide<T>>;
    const T* base = x + kept(k);
    Candidate<C> best{C{0}, -1};
    for (int64_t r = team.first(); r < searched_numel; r += team.step()) {
      best = better<kMax>(best, Candidate<C>{static_cast<C>(widen(base[searched(r)])), r});
    }
    best = team.reduce(
        best, [](const Candidate<C>& a, const Candidate<C>& b) { return better<kMax>(a, b); });
    if (!team.leads()) return;
    positions[k] = best.position < 0 ? 0 : best.position;
    if (values != nullptr) values[k] = narrow<T>(static_cast<Wide<T>>(best.value));
  }
};

template <bool kMax>
void find_extremum(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    for_each_row(ctx, places.kept_numel, places.reduced_numel,
                 FindExtremum<T, kMax>{ctx.in(0).as<T>(), ctx.out(0).as<T>(), places});
  });
}

// The positions are stored in the last output and the values, if requested, in the one before it.
template <bool kMax>
void find_position(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const DimSet reduced = dim_set(ctx.attrs_as<ReduceAttrs>().dims);
  Shape kept_size, searched_size;
  Strides kept_strides, searched_strides;
  for (int64_t i = 0; i < x.shape().size(); ++i) {
    const bool is_searched = (reduced >> i & 1U) != 0;
    (is_searched ? searched_size : kept_size).push_back(x.shape()[i]);
    (is_searched ? searched_strides : kept_strides).push_back(x.strides()[i]);
  }
  dispatch_all(x.meta->dtype, [&]<class T>() {
    T* values = ctx.outputs.size() > 1 ? ctx.out(0).as<T>() : nullptr;
    for_each_row(
        ctx, kept_size.numel(), searched_size.numel(),
        FindPosition<T, kMax>{x.as<T>(), values, ctx.outputs.back().as<int64_t>(),
                              Places(kept_size, kept_strides),
                              Places(searched_size, searched_strides), searched_size.numel()});
  });
}

template <bool kMax>
KernelChoice select_extremum(const KernelQuery& query) {
  return {find_extremum<kMax>,
          std::make_shared<const ReduceState>(prepare_reduction(
              query.input(0), reduced_dims_of(query.op, query.input(0), query.attrs)))};
}

}  // namespace

void register_extrema_cuda(KernelTable& table) {
  table.add(kAmax, DeviceType::kCuda, {"cuda", select_extremum<true>});
  table.add(kAmin, DeviceType::kCuda, {"cuda", select_extremum<false>});
  for (const OpDef* op : {&kMaxDim, &kArgmax})
    table.add(*op, DeviceType::kCuda, {"cuda", always<find_position<true>>});
  for (const OpDef* op : {&kMinDim, &kArgmin})
    table.add(*op, DeviceType::kCuda, {"cuda", always<find_position<false>>});
}

}  // namespace flow::ops
