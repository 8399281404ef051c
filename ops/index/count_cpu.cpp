// Counts of elements in bins of equal width.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/index/count_op.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

void register_count_cpu(KernelTable& table);

namespace {

// Elements that find their bins together.
constexpr int64_t kBlock = 512;
// Two tables of so many counts stay in the first-level cache.
constexpr int64_t kFewBins = 1024;
// The least number of elements for which a thread keeps counts of its own.
constexpr int64_t kGrain = 1 << 15;

// The bins of a call. Elements outside of them have the bin `bins`.
template <class C>
struct Bins {
  C low, high, width;
  int64_t bins;

  int64_t of(C x) const {
    if (!(x >= low && x <= high)) return bins;
    const C place = (x - low) / width * static_cast<C>(bins);
    return place < static_cast<C>(bins) ? static_cast<int64_t>(place) : bins - 1;
  }
};

// The bins of n <= kBlock elements one by one, or by vectors as whole numbers of C.
template <bool kVectors, class C, class Add>
void for_each_bin(const Bins<C>& bins, const C* x, int64_t n, const Add& add) {
  if constexpr (kVectors) {
    std::array<C, kBlock> places;
    const Vec<C> low = Vec<C>::fill(bins.low), high = Vec<C>::fill(bins.high);
    const Vec<C> width = Vec<C>::fill(bins.width),
                 outside = Vec<C>::fill(static_cast<C>(bins.bins));
    const Vec<C> last = Vec<C>::fill(static_cast<C>(bins.bins - 1));
    map(
        places.data(), n,
        [&](Vec<C> v) {
          const Vec<C> place = min(floor((v - low) / width * outside), last);
          return select((v >= low) & (v <= high), place, outside);
        },
        x);
    for (int64_t i = 0; i < n; ++i)
      add(i, static_cast<int64_t>(places[static_cast<size_t>(i)]));
  } else {
    for (int64_t i = 0; i < n; ++i)
      add(i, bins.of(x[i]));
  }
}

// Adds to `counts`, where another table begins at `second`: neighbours that are in one bin add to
// the two in turn, so that an addition need not wait for the one before it. 0: there is one table.
template <bool kVectors, class C>
void count_range(const Bins<C>& bins, const C* x, int64_t begin, int64_t end, int64_t second,
                 std::vector<int64_t>& counts) {
  for (int64_t at = begin; at < end; at += kBlock) {
    for_each_bin<kVectors>(bins, x + at, std::min(kBlock, end - at), [&](int64_t i, int64_t bin) {
      ++counts[static_cast<size_t>(bin + (i & 1) * second)];
    });
  }
}

template <bool kVectors, class C>
void count_all(const KernelContext& ctx) {
  const ContiguousInput<C> x(ctx, 0), low(ctx, 1), high(ctx, 2);
  const ContiguousOutput<C> y(ctx, 0);
  const int64_t bins = ctx.attrs_as<HistcAttrs>().bins;
  const int64_t n = ctx.in(0).numel();
  const Bins<C> range{*low.data(), *high.data(), *high.data() - *low.data(), bins};
  if (!std::isfinite(range.width)) {  // on every rank, also on those without elements
    throw InvalidArgument(str("[histc] the range from ", static_cast<double>(range.low), " to ",
                              static_cast<double>(range.high),
                              " is not finite; give a finite min and max"));
  }
  const int64_t second = bins < kFewBins ? bins + 1 : 0;
  std::vector<int64_t> totals(static_cast<size_t>(bins));
  std::mutex mutex;
  ctx.pool().parallel_for(0, n, std::max(kGrain, 4 * bins), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts(static_cast<size_t>(bins + 1 + second));
    count_range<kVectors>(range, x.data(), begin, end, second, counts);
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < totals.size(); ++i)
      totals[i] += counts[i] + (second > 0 ? counts[static_cast<size_t>(second) + i] : 0);
  });
  for (size_t i = 0; i < totals.size(); ++i)
    y.data()[i] = static_cast<C>(totals[i]);
  y.finish(ctx);
}

template <bool kVectors>
KernelChoice select_count(const KernelQuery& query) {
  const bool is_double = query.input(0).dtype == DType::kFloat64;
  // Vectors hold the numbers of bins as numbers of their type.
  const int64_t most = int64_t{1} << (is_double ? 52 : 23);
  if (kVectors && query.attrs_as<HistcAttrs>().bins >= most) return {};
  const DType computed = is_double ? DType::kFloat64 : DType::kFloat32;
  return with_scratch({is_double ? count_all<kVectors, double> : count_all<kVectors, float>},
                      contiguous_scratch(query, computed));
}

}  // namespace

void register_count_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kHistc, DeviceType::kCpu, {"reference", select_count<false>});
#endif
  table.add(kHistc, DeviceType::kCpu, {FLOW_ISA_NAME, select_count<true>});
}

#include "ops/kernel/isa_end.h"
