// Norms and log-sum-exp on CUDA devices, in double. A team of threads computes each result, or a
// piece of it.
#include "core/device/device_memory.h"
#include "ops/kernel/many_tensors_cuda.cuh"
#include "ops/reduce/reduced_places_cuda.cuh"
#include "ops/reduce/statistics_op.h"

namespace flow::ops {

void register_statistics_cuda(KernelTable& table);

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// With kIsEuclidean p is 2: without the other cases the compiler lets several loads be under way at
// once.
template <class T, bool kIsEuclidean>
struct Norm {
  const T* x;
  T* y;
  ReducedPlaces places;
  double p;
  ResultPieces pieces;
  double* partial;  // a total for each piece of each result; null if results have one piece

  // The contribution of one element.
  __device__ double term(double v) const {
    if constexpr (kIsEuclidean) return v * v;
    if (p == 0) return v != 0 ? 1 : 0;
    const double size = std::abs(v);
    return p == 1 || p == kInfinity || p == -kInfinity ? size : std::pow(size, p);
  }

  __device__ double join(double a, double b) const {
    if constexpr (kIsEuclidean) return a + b;
    if (p != kInfinity && p != -kInfinity) return a + b;
    if (a != a || b != b) return a + b;  // NaN stays
    return p == kInfinity ? (a < b ? b : a) : (b < a ? b : a);
  }

  __device__ double start() const { return p == -kInfinity ? kInfinity : 0; }

  // Of a piece of a result.
  __device__ void operator()(int64_t item, Team team) const {
    const auto [k, piece] = divide(item, pieces.count);
    const T* base = x + places.kept_in(k);
    double total = start();
    const int64_t end = pieces.end(piece);
    FLOW_UNROLL_16
    for (int64_t r = pieces.begin(piece) + team.first(); r < end; r += team.step())
      total = join(total, term(static_cast<double>(widen(base[places.reduced(r)]))));
    total = team.reduce(total, [this](double a, double b) { return join(a, b); });
    if (!team.leads()) return;
    if (partial != nullptr) {
      partial[item] = total;
    } else {
      finish(k, total);
    }
  }

  __device__ void finish(int64_t k, double total) const {
    if constexpr (kIsEuclidean) {
      total = std::sqrt(total);
    } else if (p != 0 && p != 1 && p != kInfinity && p != -kInfinity) {
      total = std::pow(total, 1 / p);
    }
    y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(total));
  }
};

template <class T, bool kIsEuclidean>
struct JoinNorm {
  Norm<T, kIsEuclidean> norm;

  __device__ void operator()(int64_t k, Team team) const {
    double total = norm.start();
    for (int64_t i = team.first(); i < norm.pieces.count; i += team.step())
      total = norm.join(total, norm.partial[k * norm.pieces.count + i]);
    total = team.reduce(total, [this](double a, double b) { return norm.join(a, b); });
    if (team.leads()) norm.finish(k, total);
  }
};

// y = sqrt(sum of x^2) of a whole tensor without gaps: the sums of its pieces are added in order.
template <class T>
struct WholeNorm {
  const T* x;
  T* y;
  int64_t numel;
  double* partial = nullptr;  // a sum for each piece

  __device__ void operator()(int64_t begin, int64_t end) const {
    const Team team;
    double total = 0;
    FLOW_UNROLL_16
    for (int64_t i = begin + team.first(); i < end; i += team.step()) {
      const auto v = static_cast<double>(widen(x[i]));
      total += v * v;
    }
    total = team.sum(total);
    if (team.leads()) partial[begin / kWorkPiece] = total;
  }

  static void launch(RankContext& rank, WorkTable<WholeNorm>& table);
};

template <class T>
__global__ void __launch_bounds__(cuda::kBlockThreads) finish_norms(WorkTable<WholeNorm<T>> table) {
  const Team team;
  const WholeNorm<T>& norm = table.work[blockIdx.x];
  const int64_t pieces = (norm.numel + kWorkPiece - 1) / kWorkPiece;
  double total = 0;
  for (int64_t i = team.first(); i < pieces; i += team.step())
    total += norm.partial[i];
  total = team.sum(total);
  if (team.leads()) *norm.y = narrow<T>(static_cast<Wide<T>>(std::sqrt(total)));
}

template <class T>
void WholeNorm<T>::launch(RankContext& rank, WorkTable<WholeNorm>& table) {
  const Ref<Storage> memory =
      allocate_storage(rank, DeviceType::kCuda, table.num_pieces() * sizeof(double));
  auto* partial = reinterpret_cast<double*>(memory->data());
  for (int i = 0; i < table.count; ++i)
    table.work[i].partial = partial + (i == 0 ? 0 : table.end[i - 1]);
  run_on_many(rank, table);
  cuda::launch(finish_norms<T>, static_cast<unsigned>(table.count), cuda::kBlockThreads, 0,
               cuda::rank_device(rank).stream(), table);
}

// The largest of some elements, and the sum of their exponentials, divided by exp(shift()), so that
// no exponential overflows.
struct Exponentials {
  double largest;
  double sum;

  __device__ double shift() const {
    return largest == kInfinity || largest == -kInfinity ? 0 : largest;
  }
};

template <class T>
struct Logsumexp {
  const T* x;
  T* y;
  ReducedPlaces places;
  ResultPieces pieces;
  Exponentials* partial;  // of each piece of each result; null if results have one piece

  static __device__ double largest_of(Team team, double own) {
    return team.reduce(own, [](double a, double b) { return a < b ? b : a; });
  }

  __device__ double element(const T* base, int64_t r) const {
    return static_cast<double>(widen(base[places.reduced(r)]));
  }

  // Of a piece of a result.
  __device__ void operator()(int64_t item, Team team) const {
    const auto [k, piece] = divide(item, pieces.count);
    const T* base = x + places.kept_in(k);
    const int64_t begin = pieces.begin(piece) + team.first();
    const int64_t end = pieces.end(piece);
    double largest = -kInfinity;
    for (int64_t r = begin; r < end; r += team.step()) {
      const double v = element(base, r);
      largest = largest < v ? v : largest;
    }
    Exponentials all{largest_of(team, largest), 0};
    double sum = 0;
    for (int64_t r = begin; r < end; r += team.step())
      sum += std::exp(element(base, r) - all.shift());
    all.sum = team.sum(sum);
    if (!team.leads()) return;
    if (partial != nullptr) {
      partial[item] = all;
    } else {
      finish(k, all);
    }
  }

  __device__ void finish(int64_t k, const Exponentials& all) const {
    y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(std::log(all.sum) + all.shift()));
  }
};

template <class T>
struct JoinLogsumexp {
  Logsumexp<T> of;

  __device__ void operator()(int64_t k, Team team) const {
    const Exponentials* parts = of.partial + k * of.pieces.count;
    double largest = -kInfinity;
    for (int64_t i = team.first(); i < of.pieces.count; i += team.step())
      largest = largest < parts[i].largest ? parts[i].largest : largest;
    Exponentials all{Logsumexp<T>::largest_of(team, largest), 0};
    double sum = 0;
    for (int64_t i = team.first(); i < of.pieces.count; i += team.step()) {
      // The shift of a piece without a finite element is no element.
      if (parts[i].sum != 0) sum += parts[i].sum * std::exp(parts[i].shift() - all.shift());
    }
    all.sum = team.sum(sum);
    if (team.leads()) of.finish(k, all);
  }
};

template <class T, bool kIsEuclidean>
void norm_of(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  const ResultPieces pieces(places.kept_numel, places.reduced_numel);
  ScratchArray<double> partial;
  if (pieces.count > 1) partial = ScratchArray<double>(ctx, places.kept_numel * pieces.count);
  const Norm<T, kIsEuclidean> norm{ctx.in(0).as<T>(),
                                   ctx.out(0).as<T>(),
                                   places,
                                   ctx.attrs_as<VectorNormAttrs>().p,
                                   pieces,
                                   pieces.count > 1 ? partial.data() : nullptr};
  for_each_row(ctx, places.kept_numel * pieces.count, pieces.size, norm);
  if (pieces.count > 1) {
    for_each_row(ctx, places.kept_numel, pieces.count, JoinNorm<T, kIsEuclidean>{norm});
  }
}

// A norm of 2 that has one result.
bool is_whole_norm(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  return ctx.attrs_as<VectorNormAttrs>().p == 2 && x.meta->is_contiguous && x.numel() > 0 &&
         ctx.out(0).numel() == 1;
}

void norm(const KernelContext& ctx) {
  const bool is_euclidean = ctx.attrs_as<VectorNormAttrs>().p == 2;
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    if (is_whole_norm(ctx)) {
      const TensorView& x = ctx.in(0);
      return join_or_launch(ctx, WholeNorm<T>{x.as<T>(), ctx.out(0).as<T>(), x.numel()});
    }
    is_euclidean ? norm_of<T, true>(ctx) : norm_of<T, false>(ctx);
  });
}

void logsumexp(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  const ResultPieces pieces(places.kept_numel, places.reduced_numel);
  const bool has_pieces = pieces.count > 1;
  ScratchArray<Exponentials> partial;
  if (has_pieces) partial = ScratchArray<Exponentials>(ctx, places.kept_numel * pieces.count);
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    const Logsumexp<T> f{ctx.in(0).as<T>(), ctx.out(0).as<T>(), places, pieces,
                         has_pieces ? partial.data() : nullptr};
    for_each_row(ctx, places.kept_numel * pieces.count, pieces.size, f);
    if (has_pieces) for_each_row(ctx, places.kept_numel, pieces.count, JoinLogsumexp<T>{f});
  });
}

KernelChoice select_norm(const KernelQuery& query) {
  return {norm, share_reduction(query, query.attrs_as<VectorNormAttrs>().dims)};
}

KernelChoice select_logsumexp(const KernelQuery& query) {
  return {logsumexp, share_reduction(query, query.attrs_as<ReduceAttrs>().dims)};
}

}  // namespace

void register_statistics_cuda(KernelTable& table) {
  table.add(kNorm, DeviceType::kCuda, {"cuda", select_norm});
  table.add(kLogsumexp, DeviceType::kCuda, {"cuda", select_logsumexp});
}

}  // namespace flow::ops
