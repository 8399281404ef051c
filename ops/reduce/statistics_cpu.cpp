// Norms and log-sum-exp, computed in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector_math.h"
#include "ops/kernel/vector_math_f64.h"
#include "ops/reduce/folds.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/statistics_op.h"

#include "ops/kernel/isa_begin.h"

void register_statistics_cpu(KernelTable& table);

namespace {

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query, const Shape& dims) {
  return std::make_shared<ReduceState>(prepare_reduction(query.input(0), dim_set(dims)));
}

#if FLOW_ISA == 0

template <class T>
double widen(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return static_cast<double>(static_cast<float>(x));
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
      y[kept.out] = narrow_sum<T>(fn([&](const auto& visit) {
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

KernelChoice select_norm(const KernelQuery& query) {
  return {dispatch_floating(query.input(0).dtype, []<class T>() -> KernelFn { return norm<T>; }),
          prepare(query, query.attrs_as<VectorNormAttrs>().dims)};
}

KernelChoice select_logsumexp(const KernelQuery& query) {
  return {
      dispatch_floating(query.input(0).dtype, []<class T>() -> KernelFn { return logsumexp<T>; }),
      prepare(query, query.attrs_as<ReduceAttrs>().dims)};
}

#endif

struct NotZero {
  static Vec<double> of(Vec<double> v) {
    return select(v == Vec<double>::zero(), Vec<double>::zero(), Vec<double>::fill(1));
  }

  static double end(double sum) { return sum; }
};

struct Magnitude {
  static Vec<double> of(Vec<double> v) { return abs(v); }

  static double end(double sum) { return sum; }
};

struct Square {
  static Vec<double> of(Vec<double> v) { return v * v; }

  static double end(double sum) { return std::sqrt(sum); }
};

struct Cube {
  static Vec<double> of(Vec<double> v) { return abs(v) * (v * v); }

  static double end(double sum) { return std::cbrt(sum); }
};

template <class T>
using CountFold = TermFold<T, NotZero>;
template <class T>
using Norm1Fold = TermFold<T, Magnitude>;
template <class T>
using Norm2Fold = TermFold<T, Square>;
template <class T>
using Norm3Fold = TermFold<T, Cube>;

template <class T>
struct LargestFold : MaxFold<T> {
  static VecOf<T> take(VecOf<T> v) { return abs(v); }
};

template <class T>
struct SmallestFold : MinFold<T> {
  static VecOf<T> take(VecOf<T> v) { return abs(v); }
};

KernelChoice select_norm_fold(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<VectorNormAttrs>();
  auto state = prepare(query, attrs.dims);
  if (attrs.p == 0) return choose_fold<CountFold>(query, std::move(state));
  if (attrs.p == 1) return choose_fold<Norm1Fold>(query, std::move(state));
  if (attrs.p == 2) return choose_fold<Norm2Fold>(query, std::move(state));
  if (attrs.p == 3) return choose_fold<Norm3Fold>(query, std::move(state));
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (attrs.p == kInf) return choose_fold<LargestFold>(query, std::move(state));
  if (attrs.p == -kInf) return choose_fold<SmallestFold>(query, std::move(state));
  return {};
}

// What is subtracted before exp: the largest element, so that no exponential overflows.
template <class C>
C shift_for(C largest) {
  return std::isinf(largest) ? C{0} : largest;
}

constexpr int64_t kSumBlock = 2048;  // elements that are added in their own width

// Slices whose innermost dim is contiguous: each is read twice, from cache the second time.
template <class T>
void logsumexp_rows(const KernelContext& ctx) {
  using C = Compared<T>;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  const int outer = state.num_reduced - 1;
  const int64_t n = state.reduced[static_cast<size_t>(outer)].size;
  const int64_t rows = state.reduced_numel / n;
  const int64_t grain = std::max<int64_t>(1, 4096 / state.reduced_numel);
  ctx.pool().parallel_for(0, state.kept_numel, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
      const auto row_at = [&](int64_t r) {
        return x + kept.in + reduce_offsets(r, state.reduced.data(), outer).in;
      };
      C largest = MaxFold<T>::wide_start();
      for (int64_t r = 0; r < rows; ++r)
        largest = MaxFold<T>::join(largest, fold_run<MaxFold<T>>(row_at(r), n));
      const C shift = shift_for(largest);
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = row_at(r);
        for (int64_t i = 0; i < n; i += kSumBlock) {
          sum += static_cast<double>(row_sum<C>(std::min(kSumBlock, n - i), [&](auto at) {
            return at.keep(exp(at.get(row + i) - Vec<C>::fill(shift)), 0);
          }));
        }
      }
      y[kept.out] = narrow_sum<T>(std::log(sum) + static_cast<double>(shift));
    }
  });
}

// Slices that are columns next to each other: each lane of a vector belongs to another slice.
template <class T>
void logsumexp_columns(const KernelContext& ctx) {
  using C = Compared<T>;
  constexpr int64_t kLanes = Vec<C>::kLanes;
  constexpr int64_t kColumns = 512;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  const int outer = state.num_kept - 1;
  const int64_t columns = state.kept[static_cast<size_t>(outer)].size;
  const int64_t strips = (columns + kColumns - 1) / kColumns;
  const int64_t blocks = state.kept_numel / columns * strips;
  const int64_t rows = state.reduced_numel;
  const int64_t grain = std::max<int64_t>(1, 4096 / (rows * std::min(columns, kColumns)));
  ctx.pool().parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    std::array<C, kColumns + kLanes> shifts;
    std::array<double, kColumns + kLanes> sums;
    for (int64_t block = begin; block < end; ++block) {
      ReduceOffsets at = reduce_offsets(block / strips, state.kept.data(), outer);
      const int64_t first = block % strips * kColumns;
      at.in += first;
      at.out += first;
      const int64_t width = std::min(kColumns, columns - first);
      const auto row_at = [&](int64_t r) {
        return x + at.in + reduce_offsets(r, state.reduced.data(), state.num_reduced).in;
      };
      std::fill_n(shifts.data(), width + kLanes, MaxFold<T>::wide_start());
      std::fill_n(sums.data(), width + kLanes, 0.0);
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = row_at(r);
        for_row<C>(width, [&](auto c) {
          c.put(shifts.data(), maximum(c.get(shifts.data()), c.get(row)));
        });
      }
      for (int64_t c = 0; c < width; ++c)
        shifts[static_cast<size_t>(c)] = shift_for(shifts[static_cast<size_t>(c)]);
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = row_at(r);
        for (int64_t c = 0; c < width; c += kLanes) {
          const Vec<C> v = c + kLanes <= width ? load(row + c) : load_n(row + c, width - c);
          SumFold<C>::spill(sums.data() + c, exp(v - Vec<C>::load(shifts.data() + c)));
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        const auto i = static_cast<size_t>(c);
        y[at.out + c] = narrow_sum<T>(std::log(sums[i]) + static_cast<double>(shifts[i]));
      }
    }
  });
}

KernelChoice select_logsumexp_fast(const KernelQuery& query) {
  auto state = prepare(query, query.attrs_as<ReduceAttrs>().dims);
  if (state->kept_numel == 0 || state->reduced_numel == 0) return {};
  const KernelFn fn = dispatch_floating(query.input(0).dtype, [&]<class T>() -> KernelFn {
    return state->has_rows      ? logsumexp_rows<T>
           : state->has_columns ? logsumexp_columns<T>
                                : nullptr;
  });
  if (fn == nullptr) return {};
  return {fn, std::move(state)};
}

}  // namespace

void register_statistics_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kNorm, DeviceType::kCpu, {"reference", select_norm});
  table.add(kLogsumexp, DeviceType::kCpu, {"reference", select_logsumexp});
#endif
  table.add(kNorm, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_norm_fold>});
  table.add(kLogsumexp, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_logsumexp_fast>});
}

#include "ops/kernel/isa_end.h"
