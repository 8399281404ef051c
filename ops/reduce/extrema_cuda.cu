// Largest and smallest elements and their positions on CUDA devices. A team of threads computes
// each result, or a piece of it.
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
  using C = Shuffled<Wide<T>>;
  const T* x;
  T* y;
  ReducedPlaces places;
  ResultPieces pieces;
  C* partial;  // of each piece of each result; null if results have one piece

  static __device__ C better(C a, C b) { return beats<kMax>(b, a) ? b : a; }

  // Of a piece of a result.
  __device__ void operator()(int64_t item, Team team) const {
    const auto [k, piece] = divide(item, pieces.count);
    const T* base = x + places.kept_in(k);
    C best = static_cast<C>(worst<T, kMax>());
    for (int64_t r = pieces.begin(piece) + team.first(); r < pieces.end(piece); r += team.step())
      best = better(best, static_cast<C>(widen(base[places.reduced(r)])));
    best = team.reduce(best, [](C a, C b) { return better(a, b); });
    if (!team.leads()) return;
    if (partial != nullptr) {
      partial[item] = best;
    } else {
      finish(k, best);
    }
  }

  __device__ void finish(int64_t k, C best) const {
    y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(best));
  }
};

template <class T, bool kMax>
struct JoinExtremum {
  using Find = FindExtremum<T, kMax>;
  using C = typename Find::C;
  Find find;

  __device__ void operator()(int64_t k, Team team) const {
    C best = static_cast<C>(worst<T, kMax>());
    for (int64_t i = team.first(); i < find.pieces.count; i += team.step())
      best = Find::better(best, find.partial[k * find.pieces.count + i]);
    best = team.reduce(best, [](C a, C b) { return Find::better(a, b); });
    if (team.leads()) find.finish(k, best);
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
  using C = Shuffled<Wide<T>>;
  const T* x;
  T* values;  // null if not requested
  int64_t* positions;
  Places kept;
  Places searched;
  ResultPieces pieces;
  Candidate<C>* partial;  // of each piece of each result; null if results have one piece

  // Of a piece of a result.
  __device__ void operator()(int64_t item, Team team) const {
    const auto [k, piece] = divide(item, pieces.count);
    const T* base = x + kept(k);
    Candidate<C> best{C{0}, -1};
    for (int64_t r = pieces.begin(piece) + team.first(); r < pieces.end(piece); r += team.step())
      best = better<kMax>(best, Candidate<C>{static_cast<C>(widen(base[searched(r)])), r});
    best = team.reduce(
        best, [](const Candidate<C>& a, const Candidate<C>& b) { return better<kMax>(a, b); });
    if (!team.leads()) return;
    if (partial != nullptr) {
      partial[item] = best;
    } else {
      finish(k, best);
    }
  }

  __device__ void finish(int64_t k, const Candidate<C>& best) const {
    positions[k] = best.position < 0 ? 0 : best.position;
    if (values != nullptr) values[k] = narrow<T>(static_cast<Wide<T>>(best.value));
  }
};

template <class T, bool kMax>
struct JoinPosition {
  using C = typename FindPosition<T, kMax>::C;
  FindPosition<T, kMax> find;

  __device__ void operator()(int64_t k, Team team) const {
    Candidate<C> best{C{0}, -1};
    for (int64_t i = team.first(); i < find.pieces.count; i += team.step())
      best = better<kMax>(best, find.partial[k * find.pieces.count + i]);
    best = team.reduce(
        best, [](const Candidate<C>& a, const Candidate<C>& b) { return better<kMax>(a, b); });
    if (team.leads()) find.finish(k, best);
  }
};

template <bool kMax>
void find_extremum(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  const ResultPieces pieces(places.kept_numel, places.reduced_numel);
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    using C = typename FindExtremum<T, kMax>::C;
    ScratchArray<C> partial;
    if (pieces.count > 1) partial = ScratchArray<C>(ctx, places.kept_numel * pieces.count);
    const FindExtremum<T, kMax> find{ctx.in(0).as<T>(), ctx.out(0).as<T>(), places, pieces,
                                     pieces.count > 1 ? partial.data() : nullptr};
    for_each_row(ctx, places.kept_numel * pieces.count, pieces.size, find);
    if (pieces.count > 1) {
      for_each_row(ctx, places.kept_numel, pieces.count, JoinExtremum<T, kMax>{find});
    }
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
    using C = typename FindPosition<T, kMax>::C;
    T* values = ctx.outputs.size() > 1 ? ctx.out(0).as<T>() : nullptr;
    const ResultPieces pieces(kept_size.numel(), searched_size.numel());
    ScratchArray<Candidate<C>> partial;
    if (pieces.count > 1)
      partial = ScratchArray<Candidate<C>>(ctx, kept_size.numel() * pieces.count);
    const FindPosition<T, kMax> find{x.as<T>(),
                                     values,
                                     ctx.outputs.back().as<int64_t>(),
                                     Places(kept_size, kept_strides),
                                     Places(searched_size, searched_strides),
                                     pieces,
                                     pieces.count > 1 ? partial.data() : nullptr};
    for_each_row(ctx, kept_size.numel() * pieces.count, pieces.size, find);
    if (pieces.count > 1) {
      for_each_row(ctx, kept_size.numel(), pieces.count, JoinPosition<T, kMax>{find});
    }
  });
}

template <bool kMax>
KernelChoice select_extremum(const KernelQuery& query) {
  return {find_extremum<kMax>, std::make_shared<const ReduceState>(
                                   prepare_reduction(query.input(0), reduced_dims_of(query)))};
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
