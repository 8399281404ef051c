// Norms and log-sum-exp, computed in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/statistics_op.h"

#include "ops/kernel/isa_begin.h"

void register_statistics_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

template <class T>
double widen(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return T(static_cast<float>(x));
  }
}

// y[k] = fn(each), where each(visit) calls visit for every element that is reduced to y[k].
template <class T, class Fn>
void reduce_each(const KernelContext& ctx, const Fn& fn) {
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, state.reduced_numel));
  ctx.pool().parallel_for(0, state.kept_numel, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
      y[kept.out] = narrow<T>(fn([&](const auto& visit) {
        for (int64_t r = 0; r < state.reduced_numel; ++r) {
          const int64_t at = reduce_offsets(r, state.reduced.data(), state.num_reduced).in;
          visit(widen(x[kept.in + at]));
        }
      }));
    }
  });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Each>
double norm_of(const Each& each, double p) {
  if (p == kInfinity) {
    double largest = 0;
    each([&](double v) {
      largest = v != v || largest != largest ? v + largest : std::max(largest, std::abs(v));
    });
    return largest;
  }
  if (p == -kInfinity) {
    double smallest = kInfinity;
    each([&](double v) {
      smallest = v != v || smallest != smallest ? v + smallest : std::min(smallest, std::abs(v));
    });
    return smallest;
  }
  double sum = 0;
  if (p == 0) {
    each([&](double v) { sum += v != 0 ? 1 : 0; });
    return sum;
  }
  if (p == 1) {
    each([&](double v) { sum += std::abs(v); });
    return sum;
  }
  if (p == 2) {
    each([&](double v) { sum += v * v; });
    return std::sqrt(sum);
  }
  each([&](double v) { sum += std::pow(std::abs(v), p); });
  return std::pow(sum, 1 / p);
}

template <class T>
void norm(const KernelContext& ctx) {
  const double p = ctx.attrs_as<VectorNormAttrs>().p;
  reduce_each<T>(ctx, [&](const auto& each) { return norm_of(each, p); });
}

// The largest element is subtracted first, so that no exponential overflows.
template <class T>
void logsumexp(const KernelContext& ctx) {
  reduce_each<T>(ctx, [](const auto& each) {
    double largest = -kInfinity;
    each([&](double v) { largest = std::max(largest, v); });
    const double shift = std::isinf(largest) ? 0 : largest;
    double sum = 0;
    each([&](double v) { sum += std::exp(v - shift); });
    return std::log(sum) + shift;
  });
}

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query, const Shape& dims) {
  return std::make_shared<ReduceState>(prepare_reduction(query.input(0), dim_set(dims)));
}

KernelChoice select_norm(const KernelQuery& query) {
  return {dispatch_floating(query.input(0).dtype, []<class T>() -> KernelFn { return norm<T>; }),
          prepare(query, query.attrs_as<VectorNormAttrs>().dims)};
}

KernelChoice select_logsumexp(const KernelQuery& query) {
  return {
      dispatch_floating(query.input(0).dtype, []<class T>() -> KernelFn { return logsumexp<T>; }),
      prepare(query, query.attrs_as<ReduceAttrs>().dims)};
}

}  // namespace

void register_statistics_cpu(KernelTable& table) {
  table.add(kNorm, DeviceType::kCpu, {"reference", select_norm});
  table.add(kLogsumexp, DeviceType::kCpu, {"reference", select_logsumexp});
}

#else

void register_statistics_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
