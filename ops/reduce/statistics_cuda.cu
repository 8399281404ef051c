// Norms and log-sum-exp on CUDA devices, in double. A team of threads computes each result.
#include "ops/reduce/reduced_places_cuda.cuh"
#include "ops/reduce/statistics_op.h"

namespace flow::ops {

void register_statistics_cuda(KernelTable& table);

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
struct Norm {
  const T* x;
  T* y;
  ReducedPlaces places;
  double p;

  // The contribution of one element.
  __device__ double term(double v) const {
    if (p == 0) return v != 0 ? 1 : 0;
    if (p == 2) return v * v;
    const double size = std::abs(v);
    return p == 1 || p == kInfinity || p == -kInfinity ? size : std::pow(size, p);
  }

  __device__ double join(double a, double b) const {
    if (p != kInfinity && p != -kInfinity) return a + b;
    if (a != a || b != b) return a + b;  // NaN stays
    return p == kInfinity ? (a < b ? b : a) : (b < a ? b : a);
  }

  __device__ void operator()(int64_t k, Team team) const {
    const T* base = x + places.kept_in(k);
    double total = p == -kInfinity ? kInfinity : 0;
    for (int64_t r = team.first(); r < places.reduced_numel; r += team.step())
      total = join(total, term(static_cast<double>(widen(base[places.reduced(r)]))));
    total = team.reduce(total, [this](double a, double b) { return join(a, b); });
    if (!team.leads()) return;
    if (p == 2) {
      total = std::sqrt(total);
    } else if (p != 0 && p != 1 && p != kInfinity && p != -kInfinity) {
      total = std::pow(total, 1 / p);
    }
    y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(total));
  }
};

// The largest element is subtracted first, so that no exponential overflows.
template <class T>
struct Logsumexp {
  const T* x;
  T* y;
  ReducedPlaces places;

  __device__ double element(const T* base, int64_t r) const {
    return static_cast<double>(widen(base[places.reduced(r)]));
  }

  __device__ void operator()(int64_t k, Team team) const {
    const T* base = x + places.kept_in(k);
    double largest = -kInfinity;
    for (int64_t r = team.first(); r < places.reduced_numel; r += team.step()) {
      const double v = element(base, r);
      largest = largest < v ? v : largest;
    }
    largest = team.reduce(largest, [](double a, double b) { return a < b ? b : a; });
    const double shift = largest == kInfinity || largest == -kInfinity ? 0 : largest;
    double sum = 0;
    for (int64_t r = team.first(); r < places.reduced_numel; r += team.step())
      sum += std::exp(element(base, r) - shift);
    sum = team.sum(sum);
    if (team.leads())
      y[places.kept_out(k)] = narrow<T>(static_cast<Wide<T>>(std::log(sum) + shift));
  }
};

void norm(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    for_each_row(
        ctx, places.kept_numel, places.reduced_numel,
        Norm<T>{ctx.in(0).as<T>(), ctx.out(0).as<T>(), places, ctx.attrs_as<VectorNormAttrs>().p});
  });
}

void logsumexp(const KernelContext& ctx) {
  const ReducedPlaces places(ctx.state_as<ReduceState>());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    for_each_row(ctx, places.kept_numel, places.reduced_numel,
                 Logsumexp<T>{ctx.in(0).as<T>(), ctx.out(0).as<T>(), places});
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
