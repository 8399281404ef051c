// Reductions to a sum, mean, product or truth value.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/kernel/vector.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/reduce_op.h"

#include "ops/kernel/isa_begin.h"

void register_reduce_cpu(KernelTable& table);

namespace {

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  auto state = std::make_shared<ReduceState>(
      prepare_reduction(x, reduced_dims_of(query.op, x, query.attrs)));
  if (&query.op == &kMean) {
    state->divisor = static_cast<double>(query.attrs_as<MeanAttrs>().count);
  }
  return state;
}

#if FLOW_ISA == 0

template <class T>
constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsFloat16<T>;
// Sums and products are kept in double and int64.
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double, int64_t>;

template <class T>
Wide<T> widen(T x) {
  if constexpr (kIsFloat16<T>) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<Wide<T>>(x);
  }
}

template <class T>
T narrow(double x) {
  if constexpr (kIsFloat16<T>) {
    return T(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

// Results are combined by join, starting with start(), and converted by end.
template <class T>
struct Sum {
  using Result = std::conditional_t<kIsFloat<T>, T, int64_t>;

  static Wide<T> start() { return 0; }

  static Wide<T> join(Wide<T> sum, T x) {
    if constexpr (kIsFloat<T>) {
      return sum + widen(x);
    } else {  // wraps around
      return static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(widen(x)));
    }
  }

  static Result end(Wide<T> sum, const ReduceState& state) {
    if constexpr (kIsFloat<T>) {
      return narrow<T>(sum / state.divisor);
    } else {
      return sum;
    }
  }
};

template <class T>
struct Product {
  using Result = std::conditional_t<kIsFloat<T>, T, int64_t>;

  static Wide<T> start() { return 1; }

  static Wide<T> join(Wide<T> product, T x) {
    if constexpr (kIsFloat<T>) {
      return product * widen(x);
    } else {  // wraps around
      return static_cast<int64_t>(static_cast<uint64_t>(product) * static_cast<uint64_t>(widen(x)));
    }
  }

  static Result end(Wide<T> product, const ReduceState& /*plan*/) {
    if constexpr (kIsFloat<T>) {
      return narrow<T>(product);
    } else {
      return product;
    }
  }
};

template <class T>
struct Any {
  using Result = bool;

  static bool start() { return false; }

  static bool join(bool any, T x) { return any || widen(x) != 0; }

  static bool end(bool any, const ReduceState& /*plan*/) { return any; }
};

template <class T>
struct All {
  using Result = bool;

  static bool start() { return true; }

  static bool join(bool all, T x) { return all && widen(x) != 0; }

  static bool end(bool all, const ReduceState& /*plan*/) { return all; }
};

template <class T, class Gather>
void reduce_reference(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Gather::Result>();
  const int outer = state.num_reduced - 1;
  const ReduceState::Dim row =
      outer < 0 ? ReduceState::Dim{1, 1, 0} : state.reduced[static_cast<size_t>(outer)];
  const int64_t rows = row.size == 0 ? 0 : state.reduced_numel / row.size;
  for (int64_t k = 0; k < state.kept_numel; ++k) {
    const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
    auto sum = Gather::start();
    for (int64_t r = 0; r < rows; ++r) {
      const T* p = x + kept.in + reduce_offsets(r, state.reduced.data(), outer).in;
      for (int64_t i = 0; i < row.size; ++i)
        sum = Gather::join(sum, p[i * row.in_stride]);
    }
    y[kept.out] = Gather::end(sum, state);
  }
}

template <template <class> class Gather>
KernelChoice select_reference(const KernelQuery& query) {
  const KernelFn fn = dispatch_all(
      query.input(0).dtype, []<class T>() -> KernelFn { return reduce_reference<T, Gather<T>>; });
  return {fn, prepare(query)};
}

void register_reference(KernelTable& table) {
  for (const OpDef* op : {&kSum, &kMean, &kSumTo})
    table.add(*op, DeviceType::kCpu, {"reference", select_reference<Sum>});
  table.add(kProd, DeviceType::kCpu, {"reference", select_reference<Product>});
  table.add(kAny, DeviceType::kCpu, {"reference", select_reference<Any>});
  table.add(kAll, DeviceType::kCpu, {"reference", select_reference<All>});
}

#endif

// Vectors of float or double; 16-bit types are widened as they are loaded.
template <class T>
struct SumFold {
  using Element = T;
  using Wide = double;
  using V = VecOf<T>;

  static V start() { return V::zero(); }

  static double wide_start() { return 0; }

  static V keep_first(V v, int64_t /*n*/) { return v; }

  static V join(V a, V b) { return a + b; }

  static double join(double a, double b) { return a + b; }

  static double across(V v) { return static_cast<double>(sum(v)); }

  static void spill(double* w, V v) {
    if constexpr (std::is_same_v<T, double>) {
      (V::load(w) + v).store(w);
    } else {
      constexpr int64_t kHalf = Vec<double>::kLanes;
      (Vec<double>::load(w) + widen_low(v)).store(w);
      (Vec<double>::load(w + kHalf) + widen_high(v)).store(w + kHalf);
    }
  }

  static T end(double sum, double divisor) {
    const double result = divisor == 1 ? sum : sum / divisor;
    if constexpr (std::is_same_v<T, double>) {
      return result;
    } else {
      return T(static_cast<float>(result));
    }
  }
};

KernelChoice select_sum(const KernelQuery& query) {
  const DType dtype = query.input(0).dtype;
  if (!is_floating(dtype)) return {};
  auto state = prepare(query);
  const KernelFn fn =
      dispatch_floating(dtype, [&]<class T>() { return fold_loop<SumFold<T>>(*state); });
  if (fn == nullptr) return {};
  KernelScratch scratch =
      dispatch_floating(dtype, [&]<class T>() { return fold_scratch<SumFold<T>>(*state); });
  return with_scratch({fn, std::move(state)}, std::move(scratch));
}

}  // namespace

void register_reduce_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_reference(table);
#endif
  for (const OpDef* op : {&kSum, &kMean, &kSumTo})
    table.add(*op, DeviceType::kCpu, {FLOW_ISA_NAME, select_sum});
}

#include "ops/kernel/isa_end.h"
