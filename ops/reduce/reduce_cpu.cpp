// Reductions to a sum, mean, product or truth value.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/kernel/vector.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

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

// Sums and products are kept in double and int64.
template <class T>
using Wide = std::conditional_t<is_floating(dtype_of<T>), double, int64_t>;

template <class T>
Wide<T> widen(T x) {
  if constexpr (is_floating(dtype_of<T>) && sizeof(T) == 2) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<Wide<T>>(x);
  }
}

template <class Result, class A>
Result narrow(A a) {
  if constexpr (sizeof(Result) == 2) {
    return Result(static_cast<float>(a));
  } else {
    return static_cast<Result>(a);
  }
}

template <class T, class Row>
void reduce_reference(const KernelContext& ctx) {
  using Joined = Gather<Row, T, Wide<T>>;
  using Result = typename Joined::Result;
  const auto& state = ctx.state_as<ReduceState>();
  const T* x = ctx.in(0).as<T>();
  auto* y = ctx.out(0).as<Result>();
  const int outer = state.num_reduced - 1;
  const ReduceState::Dim row =
      outer < 0 ? ReduceState::Dim{1, 1, 0} : state.reduced[static_cast<size_t>(outer)];
  const int64_t rows = row.size == 0 ? 0 : state.reduced_numel / row.size;
  for (int64_t k = 0; k < state.kept_numel; ++k) {
    const ReduceOffsets kept = reduce_offsets(k, state.kept.data(), state.num_kept);
    auto sum = Joined::start();
    for (int64_t r = 0; r < rows; ++r) {
      const T* p = x + kept.in + reduce_offsets(r, state.reduced.data(), outer).in;
      for (int64_t i = 0; i < row.size; ++i)
        sum = Joined::join(sum, Joined::take(widen(p[i * row.in_stride])));
    }
    y[kept.out] = narrow<Result>(Joined::end(sum, state.divisor));
  }
}

template <class Row>
KernelChoice select_reference(const KernelQuery& query) {
  const KernelFn fn = dispatch_all(query.input(0).dtype,
                                   []<class T>() -> KernelFn { return reduce_reference<T, Row>; });
  return {fn, prepare(query)};
}

template <class... Row>
void add_references(KernelTable& table, Rows<Row...> /*rows*/) {
  (table.add(reduction_of<Row>(), DeviceType::kCpu, {"reference", select_reference<Row>}), ...);
}

void register_references(KernelTable& table) {
  add_references(table, ReduceRows());
  for (const OpDef* op : {&kMean, &kSumTo})
    table.add(*op, DeviceType::kCpu, {"reference", select_reference<Sum>});
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

  static V take(V v) { return v; }

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

template <class T>
struct NansumFold : SumFold<T> {
  using V = VecOf<T>;

  static V take(V v) { return select(v == v, v, V::zero()); }
};

template <template <class> class Fold>
KernelChoice select_fold(const KernelQuery& query) {
  const DType dtype = query.input(0).dtype;
  if (!is_floating(dtype)) return {};
  auto state = prepare(query);
  const KernelFn fn =
      dispatch_floating(dtype, [&]<class T>() { return fold_loop<Fold<T>>(*state); });
  if (fn == nullptr) return {};
  KernelScratch scratch =
      dispatch_floating(dtype, [&]<class T>() { return fold_scratch<Fold<T>>(*state); });
  return with_scratch({fn, std::move(state)}, std::move(scratch));
}

}  // namespace

void register_reduce_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_references(table);
#endif
  for (const OpDef* op : {&reduction_of<Sum>(), &kMean, &kSumTo})
    table.add(*op, DeviceType::kCpu, {FLOW_ISA_NAME, select_fold<SumFold>});
  table.add(reduction_of<Nansum>(), DeviceType::kCpu, {FLOW_ISA_NAME, select_fold<NansumFold>});
}

#include "ops/kernel/isa_end.h"
