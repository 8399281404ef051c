#include "boxing/comm/reduction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <ostream>

#include "boxing/comm/reduction_formulas.h"
#include "core/error.h"

namespace flow::boxing {

std::ostream& operator<<(std::ostream& out, ReduceOp op) {
  constexpr std::array kNames = {"sum", "max", "min", "mean"};
  return out << kNames[static_cast<size_t>(op)];
}

ReduceOp reduce_op_of(Sbp entry) {
  FLOW_ASSERT(entry.is_partial(), "sbp ", entry, " is not partial");
  return entry == sbp::partial_sum   ? ReduceOp::kSum
         : entry == sbp::partial_max ? ReduceOp::kMax
                                     : ReduceOp::kMin;
}

namespace {

template <ReduceOp kOp, class T>
void reduce_typed(std::span<const std::byte* const> sources, std::byte* target, int64_t count) {
  using A = Accumulator<T>;
  constexpr int64_t kBlock = 512;  // accumulators stay in the first-level cache
  std::array<A, kBlock> block;
  auto* out = reinterpret_cast<T*>(target);
  const auto at = [&](size_t source, int64_t begin) {
    return reinterpret_cast<const T*>(sources[source]) + begin;
  };
  const auto finish = [&](A value) {
    if constexpr (kOp == ReduceOp::kMean) value /= static_cast<A>(sources.size());
    return T(value);
  };
  if (sources.size() == 1) {
    std::memmove(target, sources[0], static_cast<size_t>(count) * sizeof(T));
    return;
  }
  if (sources.size() == 2) {
    const T* first = at(0, 0);
    const T* second = at(1, 0);
#pragma GCC ivdep  // the target may be one of the sources
    for (int64_t i = 0; i < count; ++i)
      out[i] = finish(combine<kOp, A>(static_cast<A>(first[i]), static_cast<A>(second[i])));
    return;
  }
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const auto size = static_cast<size_t>(std::min(kBlock, count - begin));
    const T* first = at(0, begin);
    for (size_t i = 0; i < size; ++i)
      block[i] = static_cast<A>(first[i]);
    for (size_t source = 1; source < sources.size(); ++source) {
      const T* next = at(source, begin);
      for (size_t i = 0; i < size; ++i)
        block[i] = combine<kOp, A>(block[i], static_cast<A>(next[i]));
    }
    T* result = out + begin;
    for (size_t i = 0; i < size; ++i)
      result[i] = finish(block[i]);
  }
}

}  // namespace

void reduce_in_order(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
                     std::byte* target, int64_t count) {
  FLOW_ASSERT(!sources.empty(), "nothing to reduce");
  dispatch_all(dtype, [&]<class T>() {
    switch (op) {
      case ReduceOp::kSum:
        return reduce_typed<ReduceOp::kSum, T>(sources, target, count);
      case ReduceOp::kMax:
        return reduce_typed<ReduceOp::kMax, T>(sources, target, count);
      case ReduceOp::kMin:
        return reduce_typed<ReduceOp::kMin, T>(sources, target, count);
      case ReduceOp::kMean:
        if constexpr (kHasMean<T>) return reduce_typed<ReduceOp::kMean, T>(sources, target, count);
        FLOW_ASSERT(false, "no mean of ", dtype);
    }
  });
}

void fill_neutral(DType dtype, ReduceOp op, std::byte* target, int64_t count) {
  dispatch_all(dtype, [&]<class T>() {
    std::fill_n(reinterpret_cast<T*>(target), count, neutral_value<T>(op));
  });
}

}  // namespace flow::boxing
