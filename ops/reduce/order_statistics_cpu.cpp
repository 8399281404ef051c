// Kernels of ops/reduce/order_statistics.h. Each works on one line at a time.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/kernel/lines.h"
#include "ops/kernel/ordered_line.h"
#include "ops/reduce/order_statistics_op.h"

#include "ops/kernel/isa_begin.h"

void register_order_statistics_cpu(KernelTable& table);

namespace {

#if FLOW_ISA == 0

template <class T>
struct Entry {
  T value;
  int64_t index;
};

template <class T>
bool is_nan(const T& value) {
  return value != value;
}

// A total order: NaN last, the earlier of two equals first.
template <class T>
bool comes_before(const Entry<T>& a, const Entry<T>& b) {
  if (is_nan(a.value) || is_nan(b.value)) {
    return is_nan(a.value) == is_nan(b.value) ? a.index < b.index : is_nan(b.value);
  }
  return a.value == b.value ? a.index < b.index : a.value < b.value;
}

template <class T>
using Compared =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

// Returns the entry of rank `rank`, counted from 0, and reorders the entries.
template <class T>
Entry<T> entry_at(std::vector<Entry<T>>& entries, int64_t rank) {
  std::nth_element(entries.begin(), entries.begin() + rank, entries.end(), comes_before<T>);
  return entries[static_cast<size_t>(rank)];
}

// The lower middle element, or the first NaN if there is one.
template <class T>
Entry<T> median_of(std::vector<Entry<T>>& entries) {
  for (const Entry<T>& entry : entries) {
    if (is_nan(entry.value)) return entry;
  }
  return entry_at(entries, (static_cast<int64_t>(entries.size()) - 1) / 2);
}

template <class T>
Entry<T> nanmedian_of(std::vector<Entry<T>>& entries) {
  const auto numbers =
      std::count_if(entries.begin(), entries.end(), [](auto& e) { return !is_nan(e.value); });
  return entry_at(entries, std::max<int64_t>(0, (numbers - 1) / 2));
}

// The last entry of the first of the longest runs of equal values.
template <class T>
Entry<T> mode_of(std::vector<Entry<T>>& entries) {
  std::sort(entries.begin(), entries.end(), comes_before<T>);
  size_t longest = 0;
  size_t run = 0;
  Entry<T> result = entries.front();
  for (size_t i = 0; i < entries.size(); ++i) {
    ++run;
    if (i + 1 < entries.size() && entries[i].value == entries[i + 1].value) continue;
    if (run > longest) {
      longest = run;
      result = entries[i];
    }
    run = 0;
  }
  return result;
}

template <class T, class Choose>
void choose_along_dim(const KernelContext& ctx, const Choose& choose) {
  const auto& attrs = ctx.attrs_as<RankAttrs>();
  const TensorView& x = ctx.in(0);
  const int64_t size = line_size(x, attrs.dim);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, size));
  // Outputs are written in the row-major order of the lines.
  T* values = ctx.out(0).as<T>();
  auto* indices = ctx.out(1).as<int64_t>();
  ctx.pool().parallel_for(0, num_lines(x, attrs.dim), grain, [&](int64_t begin, int64_t end) {
    std::vector<Entry<Compared<T>>> entries(static_cast<size_t>(size));
    for (int64_t l = begin; l < end; ++l) {
      const Line from = line_of(x, attrs.dim, l);
      for (int64_t i = 0; i < size; ++i) {
        entries[static_cast<size_t>(i)] = {
            static_cast<Compared<T>>(x.as<T>()[from.offset + i * from.stride]), i};
      }
      const Entry<Compared<T>> chosen = choose(entries);
      values[l] = T(chosen.value);
      indices[l] = chosen.index;
    }
  });
}

void kthvalue(const KernelContext& ctx) {
  const int64_t k = ctx.attrs_as<RankAttrs>().k;
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_along_dim<T>(ctx, [k](auto& entries) { return entry_at(entries, k - 1); });
  });
}

void median(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_along_dim<T>(ctx, [](auto& entries) { return median_of(entries); });
  });
}

void nanmedian(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_along_dim<T>(ctx, [](auto& entries) { return nanmedian_of(entries); });
  });
}

void mode(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_along_dim<T>(ctx, [](auto& entries) { return mode_of(entries); });
  });
}

// The result for no elements: NaN, or 0.
template <class T, class Choose>
void choose_of_all(const KernelContext& ctx, const Choose& choose) {
  const TensorView& x = ctx.in(0);
  std::vector<Entry<Compared<T>>> entries;
  entries.reserve(static_cast<size_t>(x.shape().numel()));
  const int64_t last = x.shape().size() - 1;
  const int64_t size = x.shape().numel() == 0 ? 0 : line_size(x, last);
  const int64_t lines = size == 0 ? 0 : num_lines(x, last);
  for (int64_t l = 0; l < lines; ++l) {
    const Line from = line_of(x, last, l);
    for (int64_t i = 0; i < size; ++i) {
      entries.push_back({static_cast<Compared<T>>(x.as<T>()[from.offset + i * from.stride]),
                         static_cast<int64_t>(entries.size())});
    }
  }
  T& y = *ctx.out(0).as<T>();
  if (entries.empty()) {
    y = T(std::is_floating_point_v<Compared<T>> ? static_cast<Compared<T>>(NAN) : Compared<T>{});
  } else {
    y = T(choose(entries).value);
  }
}

void median_of_all(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_of_all<T>(ctx, [](auto& entries) { return median_of(entries); });
  });
}

void nanmedian_of_all(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    choose_of_all<T>(ctx, [](auto& entries) { return nanmedian_of(entries); });
  });
}

#endif

template <class T>
int64_t count_nans(const T* x, int64_t stride, int64_t n) {
  int64_t count = 0;
  if constexpr (is_floating(dtype_of<T>)) {
    for (int64_t i = 0; i < n; ++i)
      count += x[i * stride] != x[i * stride] ? 1 : 0;
  }
  return count;
}

// The functions choose an element of a line of n: they return its position.
struct Kth {
  template <class T>
  static int64_t choose(LineOrder<T>& order, const T* x, int64_t stride, int64_t /*n*/, int64_t k) {
    return order.find(x, stride, k - 1);
  }
};

struct Median {
  template <class T>
  static int64_t choose(LineOrder<T>& order, const T* x, int64_t stride, int64_t n, int64_t /*k*/) {
    if (count_nans(x, stride, n) == 0) return order.find(x, stride, (n - 1) / 2);
    int64_t first = 0;
    while (x[first * stride] == x[first * stride])
      ++first;
    return first;
  }
};

struct Nanmedian {
  template <class T>
  static int64_t choose(LineOrder<T>& order, const T* x, int64_t stride, int64_t n, int64_t /*k*/) {
    const int64_t numbers = n - count_nans(x, stride, n);
    return order.find(x, stride, std::max<int64_t>(0, (numbers - 1) / 2));
  }
};

// The last of the first of the longest runs of equal keys, 0 < n.
template <class K>
int64_t last_of_longest_run(const Item<K>* items, int64_t n) {
  int64_t longest = 0;
  int64_t last = 0;
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin + 1;
    while (end < n && items[end].ordered_key() == items[begin].ordered_key())
      ++end;
    if (end - begin > longest) {
      longest = end - begin;
      last = end - 1;
    }
    begin = end;
  }
  return items[last].position();
}

struct Mode {
  template <class T>
  static int64_t choose(LineOrder<T>& order, const T* x, int64_t stride, int64_t n, int64_t /*k*/) {
    const int64_t numbers = n - count_nans(x, stride, n);  // each NaN is a run of one
    int64_t chosen = 0;
    order.with_keys(x, stride, false, [&](const auto* keys) {
      chosen = last_of_longest_run(order.order_all(keys), std::max<int64_t>(1, numbers));
    });
    return chosen;
  }
};

// Outputs are written in the row-major order of the lines.
template <class T, class Choice>
void choose_fast(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<RankAttrs>();
  const TensorView& x = ctx.in(0);
  for_each_ordered_line<T>(ctx, x, attrs.dim, [&](LineOrder<T>& order, int64_t l) {
    const Line line = line_of(x, attrs.dim, l);
    const T* first = x.as<T>() + line.offset;
    const int64_t chosen =
        Choice::choose(order, first, line.stride, line_size(x, attrs.dim), attrs.k);
    ctx.out(0).as<T>()[l] = first[chosen * line.stride];
    ctx.out(1).as<int64_t>()[l] = chosen;
  });
}

template <class T, class Choice>
void choose_of_all_fast(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  LineOrder<T> order(ctx, x.numel());
  *ctx.out(0).as<T>() = x.as<T>()[Choice::choose(order, x.as<T>(), 1, x.numel(), 0)];
}

template <class Choice>
KernelChoice select_choice(const KernelQuery& query) {
  return dispatch_all(query.input(0).dtype, [&]<class T>() {
    return choose_for_lines<T>(query, query.attrs_as<RankAttrs>().dim, choose_fast<T, Choice>);
  });
}

// The elements of a contiguous tensor are one line.
template <class Choice>
KernelChoice select_choice_of_all(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  if (!x.is_contiguous || x.local_numel == 0 || x.local_numel > kLongestOrderedLine) return {};
  return dispatch_all(x.dtype, [&]<class T>() {
    return with_scratch({choose_of_all_fast<T, Choice>}, {{LineOrder<T>::bytes(x.local_numel)}});
  });
}

}  // namespace

void register_order_statistics_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kKthvalue, DeviceType::kCpu, {"reference", always<kthvalue>});
  table.add(kMedian, DeviceType::kCpu, {"reference", always<median>});
  table.add(kNanmedian, DeviceType::kCpu, {"reference", always<nanmedian>});
  table.add(kMode, DeviceType::kCpu, {"reference", always<mode>});
  table.add(kMedianOfAll, DeviceType::kCpu, {"reference", always<median_of_all>});
  table.add(kNanmedianOfAll, DeviceType::kCpu, {"reference", always<nanmedian_of_all>});
#endif
  table.add(kKthvalue, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_choice<Kth>>});
  table.add(kMedian, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_choice<Median>>});
  table.add(kNanmedian, DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_choice<Nanmedian>>});
  table.add(kMode, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_choice<Mode>>});
  table.add(kMedianOfAll, DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_choice_of_all<Median>>});
  table.add(kNanmedianOfAll, DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_choice_of_all<Nanmedian>>});
}

#include "ops/kernel/isa_end.h"
