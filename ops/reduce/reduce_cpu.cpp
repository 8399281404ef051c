// Reductions to a sum, mean, product or truth value.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/reduce/folds.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

#include "ops/kernel/isa_begin.h"

void register_reduce_cpu(KernelTable& table);

namespace {

std::shared_ptr<const ReduceState> prepare(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  auto state = std::make_shared<ReduceState>(prepare_reduction(x, reduced_dims_of(query)));
  if (&query.op == &kMean) {
    state->divisor = static_cast<double>(query.attrs_as<MeanAttrs>().count);
  }
  return state;
}

// Sums and products are kept in double and int64.
template <class T>
using WideOf = std::conditional_t<is_floating(dtype_of<T>), double, int64_t>;

template <class T>
WideOf<T> widen(T x) {
  if constexpr (kIsHalf<T>) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<WideOf<T>>(x);
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

#if FLOW_ISA == 0

template <class T, class Row>
void reduce_reference(const KernelContext& ctx) {
  using Joined = Gather<Row, T, WideOf<T>>;
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

template <template <class> class Fold>
KernelChoice select_fold(const KernelQuery& query) {
  return is_floating(query.input(0).dtype) ? choose_fold<Fold>(query, prepare(query))
                                           : KernelChoice();
}

// A row of the table, joined in the type in which its reference accumulates. Truth values are taken
// from the elements as they are.
template <class T, class Row>
struct RowFold {
  static constexpr bool kIsFloat16 = kIsHalf<T>;
  using Taken = std::conditional_t<!Row::kFacts.gives_bools, WideOf<T>,
                                   std::conditional_t<kIsFloat16, float, T>>;
  using Joined = Gather<Row, T, Taken>;
  using Element = T;
  using Result = typename Joined::Result;
  using Wide = typename Joined::Gathered;

  static Wide wide_start() { return Joined::start(); }

  static Wide take(T x) {
    if constexpr (kIsFloat16) {
      return Joined::take(static_cast<Taken>(static_cast<float>(x)));
    } else {
      return Joined::take(static_cast<Taken>(x));
    }
  }

  static Wide join(Wide a, Wide b) { return Joined::join(a, b); }

  static Result end(Wide a, double divisor) { return narrow<Result>(Joined::end(a, divisor)); }
};

// The number of true elements. Up to 255 words of eight are added, which no byte of a word exceeds.
int64_t count_true(const bool* p, int64_t n) {
  constexpr int64_t kWords = 8;
  constexpr int64_t kBytes = kWords * sizeof(uint64_t);
  constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF;
  int64_t count = 0;
  while (n >= kBytes) {
    std::array<uint64_t, kWords> sums{};
    const int64_t turns = std::min<int64_t>(255, n / kBytes);
    for (int64_t turn = 0; turn < turns; ++turn, p += kBytes) {
      std::array<uint64_t, kWords> words;
      std::memcpy(words.data(), p, kBytes);
      for (size_t i = 0; i < kWords; ++i)
        sums[i] += words[i];
    }
    n -= turns * kBytes;
    for (const uint64_t sum : sums) {
      const uint64_t pairs = (sum & kEvenBytes) + (sum >> 8 & kEvenBytes);
      count += static_cast<int64_t>(pairs * 0x0001000100010001 >> 48);
    }
  }
  for (int64_t i = 0; i < n; ++i)
    count += p[i] ? 1 : 0;
  return count;
}

template <class Row>
struct BoolFold : RowFold<bool, Row> {
  using Wide = typename RowFold<bool, Row>::Wide;

  static Wide run(const bool* p, int64_t n) {
    const int64_t count = count_true(p, n);
    if constexpr (std::is_same_v<Row, Any>) return count > 0 ? 1 : 0;
    if constexpr (std::is_same_v<Row, All>) return count == n ? 1 : 0;
    return static_cast<Wide>(count);
  }
};

// A product of bools stays one of single elements.
template <class T, class Row>
using FoldOf = std::conditional_t<std::is_same_v<T, bool> && !std::is_same_v<Row, Prod>,
                                  BoolFold<Row>, RowFold<T, Row>>;

template <class Row>
constexpr bool kHasVectorForm =
    std::is_same_v<Row, Sum> || std::is_same_v<Row, Nansum> || std::is_same_v<Row, Prod>;

template <class Row>
KernelChoice select_row(const KernelQuery& query) {
  const DType dtype = query.input(0).dtype;
  if (kHasVectorForm<Row> && is_floating(dtype)) return {};
  return dispatch_all(dtype, [&]<class T>() -> KernelChoice {
    if constexpr (kHasVectorForm<Row> && is_floating(dtype_of<T>)) {
      return {};
    } else {
      return choose_loop<FoldOf<T, Row>>(prepare(query));
    }
  });
}

template <class... Row>
void add_rows(KernelTable& table, Rows<Row...> /*rows*/) {
  (table.add(reduction_of<Row>(), DeviceType::kCpu,
             {FLOW_ISA_NAME, as_is_or_copied<select_row<Row>>}),
   ...);
}

}  // namespace

void register_reduce_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_references(table);
#endif
  add_rows(table, ReduceRows());
  table.add(kSumTo, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_row<Sum>>});
  for (const OpDef* op : {&reduction_of<Sum>(), &kMean, &kSumTo})
    table.add(*op, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_fold<SumFold>>});
  table.add(reduction_of<Nansum>(), DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_fold<NansumFold>>});
  table.add(reduction_of<Prod>(), DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_fold<ProdFold>>});
}

#include "ops/kernel/isa_end.h"
