// Sorts lines and selects their largest or smallest elements, one line at a time.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/index/sort_op.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/kernel/lines.h"
#include "ops/kernel/ordered_line.h"

#include "ops/kernel/isa_begin.h"

void register_sort_cpu(KernelTable& table);

namespace {

#if FLOW_ISA == 0

template <class T>
struct Entry {
  T value;
  int64_t index;
};

// A total order: NaN last, the earlier of two equals first.
template <bool kDescending, class T>
bool comes_before(const Entry<T>& a, const Entry<T>& b) {
  const T& x = kDescending ? b.value : a.value;
  const T& y = kDescending ? a.value : b.value;
  if constexpr (std::is_floating_point_v<T>) {
    const bool x_nan = x != x;
    const bool y_nan = y != y;
    if (x_nan || y_nan) return x_nan == y_nan ? a.index < b.index : y_nan;
  }
  return x == y ? a.index < b.index : x < y;
}

// Puts the first `wanted` entries of each line in order into the outputs.
template <class T, bool kDescending>
void sort_lines(const KernelContext& ctx, int64_t dim, int64_t wanted) {
  constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
  using Compared = std::conditional_t<kIsFloat16, float, T>;
  const TensorView& x = ctx.in(0);
  const int64_t size = line_size(x, dim);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, size));
  ctx.pool().parallel_for(0, num_lines(x, dim), grain, [&](int64_t begin, int64_t end) {
    std::vector<Entry<Compared>> entries(static_cast<size_t>(size));
    for (int64_t l = begin; l < end; ++l) {
      const Line from = line_of(x, dim, l);
      for (int64_t i = 0; i < size; ++i) {
        entries[static_cast<size_t>(i)] = {
            static_cast<Compared>(x.as<T>()[from.offset + i * from.stride]), i};
      }
      const auto before = comes_before<kDescending, Compared>;
      if (wanted < size) {
        std::nth_element(entries.begin(), entries.begin() + wanted, entries.end(), before);
      }
      std::sort(entries.begin(), entries.begin() + wanted, before);
      const Line to = line_of(ctx.out(0), dim, l);
      for (int64_t i = 0; i < wanted; ++i) {
        const Entry<Compared>& entry = entries[static_cast<size_t>(i)];
        ctx.out(0).as<T>()[to.offset + i * to.stride] = T(entry.value);
        ctx.out(1).as<int64_t>()[to.offset + i * to.stride] = entry.index;
      }
    }
  });
}

void order(const KernelContext& ctx, int64_t dim, int64_t wanted, bool descending) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    if (descending) {
      sort_lines<T, true>(ctx, dim, wanted);
    } else {
      sort_lines<T, false>(ctx, dim, wanted);
    }
  });
}

void sort(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SortAttrs>();
  order(ctx, attrs.dim, line_size(ctx.in(0), attrs.dim), attrs.descending);
}

void topk(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<TopkAttrs>();
  order(ctx, attrs.dim, line_size(ctx.out(0), attrs.dim), attrs.largest);
}

#endif

template <class T>
void order_lines(const KernelContext& ctx, int64_t dim, int64_t wanted, bool descending) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  for_each_ordered_line<T>(ctx, x, dim, [&](LineOrder<T>& order, int64_t l) {
    const Line from = line_of(x, dim, l);
    const Line to = line_of(y, dim, l);
    const T* line = x.as<T>() + from.offset;
    T* values = y.as<T>() + to.offset;
    auto* indices = ctx.out(1).as<int64_t>() + to.offset;
    order.with_keys(line, from.stride, descending, [&](const auto* keys) {
      order.order(keys, wanted, [&](int64_t place, int64_t position) {
        values[place * to.stride] = line[position * from.stride];
        indices[place * to.stride] = position;
      });
    });
  });
}

template <class T>
void sort_fast(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SortAttrs>();
  order_lines<T>(ctx, attrs.dim, line_size(ctx.in(0), attrs.dim), attrs.descending);
}

template <class T>
void topk_fast(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<TopkAttrs>();
  order_lines<T>(ctx, attrs.dim, line_size(ctx.out(0), attrs.dim), attrs.largest);
}

KernelChoice select_sort(const KernelQuery& query) {
  return dispatch_all(query.input(0).dtype, [&]<class T>() {
    return choose_for_lines<T>(query, query.attrs_as<SortAttrs>().dim, sort_fast<T>);
  });
}

KernelChoice select_topk(const KernelQuery& query) {
  return dispatch_all(query.input(0).dtype, [&]<class T>() {
    return choose_for_lines<T>(query, query.attrs_as<TopkAttrs>().dim, topk_fast<T>);
  });
}

}  // namespace

void register_sort_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kSort, DeviceType::kCpu, {"reference", always<sort>});
  table.add(kTopk, DeviceType::kCpu, {"reference", always<topk>});
#endif
  table.add(kSort, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_sort>});
  table.add(kTopk, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_topk>});
}

#include "ops/kernel/isa_end.h"
