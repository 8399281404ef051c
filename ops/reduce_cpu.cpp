// Reductions to a sum, mean, product or truth value.
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/reduce_op.h"
#include "ops/vector.h"

#include "ops/isa_begin.h"

void register_reduce_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

template <class T>
constexpr bool is_float =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

std::shared_ptr<const ReducePlan> make_plan(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  auto plan =
      std::make_shared<ReducePlan>(plan_reduction(x, reduced_dims_of(query.op, x, query.attrs)));
  return plan;
}

// Element `index` of dims counted row-major, as offsets.
struct Offsets {
  int64_t in = 0;
  int64_t out = 0;
};

Offsets offsets_of(int64_t index, const ReducePlan::Dim* dims, int count) {
  Offsets offsets;
  for (int d = count - 1; d >= 0; --d) {
    const int64_t i = index % dims[d].size;
    index /= dims[d].size;
    offsets.in += i * dims[d].in_stride;
    offsets.out += i * dims[d].out_stride;
  }
  return offsets;
}

// Sums are kept in double and int64; a Fold says what is gathered and how it ends.
template <class T>
struct SumFold {
  using Sum = std::conditional_t<is_float<T>, double, int64_t>;
  using Result = std::conditional_t<is_float<T>, T, int64_t>;

  static Sum start() { return 0; }

  static Sum join(Sum sum, T x) {
    if constexpr (is_float<T>) {
      return sum +
             static_cast<double>(
                 static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
    } else {
      return sum + static_cast<int64_t>(x);
    }
  }

  static Result end(Sum sum, const ReducePlan& plan) {
    if constexpr (std::is_same_v<T, double>) {
      return sum / plan.divisor;
    } else if constexpr (is_float<T>) {
      return T(static_cast<float>(sum / plan.divisor));
    } else {
      return sum;
    }
  }
};

template <class T>
bool is_true(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x) != 0;
  } else {
    return x != T{};
  }
}

template <class T>
struct AnyFold {
  using Result = bool;

  static bool start() { return false; }

  static bool join(bool sum, T x) { return sum || is_true(x); }

  static bool end(bool sum, const ReducePlan& /*plan*/) { return sum; }
};

template <class T>
struct AllFold {
  using Result = bool;

  static bool start() { return true; }

  static bool join(bool sum, T x) { return sum && is_true(x); }

  static bool end(bool sum, const ReducePlan& /*plan*/) { return sum; }
};

template <class T, class Fold>
void reduce_reference(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<ReducePlan>();
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<typename Fold::Result>();
  const int outer = plan.num_reduced - 1;
  const ReducePlan::Dim row =
      outer < 0 ? ReducePlan::Dim{1, 1, 0} : plan.reduced[static_cast<size_t>(outer)];
  const int64_t rows = row.size == 0 ? 0 : plan.reduced_numel / row.size;
  for (int64_t k = 0; k < plan.kept_numel; ++k) {
    const Offsets kept = offsets_of(k, plan.kept.data(), plan.num_kept);
    auto sum = Fold::start();
    for (int64_t r = 0; r < rows; ++r) {
      const T* p = x + kept.in + offsets_of(r, plan.reduced.data(), outer).in;
      for (int64_t i = 0; i < row.size; ++i)
        sum = Fold::join(sum, p[i * row.in_stride]);
    }
    y[kept.out] = Fold::end(sum, plan);
  }
}

template <template <class> class Fold>
KernelChoice select_reference(const KernelQuery& query) {
  const KernelFn fn = dispatch_all(
      query.input(0).dtype, []<class T>() -> KernelFn { return reduce_reference<T, Fold<T>>; });
  return {fn, make_plan(query)};
}

}  // namespace

void register_reduce_cpu(KernelTable& table) {
  for (const OpDef* op : {&kSum, &kSumTo})
    table.add(*op, DeviceType::kCpu, {"reference", select_reference<SumFold>});
  table.add(kAny, DeviceType::kCpu, {"reference", select_reference<AnyFold>});
  table.add(kAll, DeviceType::kCpu, {"reference", select_reference<AllFold>});
}

#else

void register_reduce_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/isa_end.h"
