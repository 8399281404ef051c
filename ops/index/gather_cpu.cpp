// Gather, scatter and their sums over the walk of ops/index/entry_rows.h.
#include <limits>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"
#include "ops/index/entry_rows.h"
#include "ops/index/gather_op.h"
#include "ops/kernel/accumulate.h"
#include "ops/kernel/box_copy.h"
#include "ops/kernel/dispatch_size.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

void register_gather_cpu(KernelTable& table);

namespace {

void gather(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const EntryWalk walk(ctx.pool(), ctx.in(1), *ctx.in(0).meta, y, ctx.attrs_as<DimAttrs>().dim,
                       "gather");
  if (!walk.is_whole()) zero_part(y);
  dispatch_size(y.meta->dtype, [&]<class T>() {
    const T* x = ctx.in(0).as<T>();
    T* target = y.as<T>();
    walk.for_each_unordered([&](int64_t place, int64_t i) { target[i] = x[place]; });
  });
}

void ungather(const KernelContext& ctx) {
  const TensorView& y = ctx.in(0);
  const EntryWalk walk(ctx.pool(), ctx.in(1), *ctx.out(0).meta, y,
                       ctx.attrs_as<UngatherAttrs>().dim, "gather");
  dispatch_all(y.meta->dtype, [&]<class T>() {
    zero_part(ctx.out(0));
    const Accumulator<T> sums(ctx, ctx.out(0));
    const T* values = y.as<T>();
    walk.for_each([&](int64_t place, int64_t i) { sums.add(place, values[i]); });
    sums.store();
  });
}

void scatter(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  copy_part(ctx.pool(), y, ctx.in(0));
  const EntryWalk walk(ctx.pool(), ctx.in(1), *y.meta, ctx.in(2), ctx.attrs_as<DimAttrs>().dim,
                       "scatter");
  dispatch_size(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T* src = ctx.in(2).as<T>();
    walk.for_each([&](int64_t place, int64_t i) { target[place] = src[i]; });
  });
}

void scatter_add(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  copy_part(ctx.pool(), y, ctx.in(0));
  const EntryWalk walk(ctx.pool(), ctx.in(1), *y.meta, ctx.in(2), ctx.attrs_as<DimAttrs>().dim,
                       "scatter_add");
  dispatch_all(y.meta->dtype, [&]<class T>() {
    const Accumulator<T> sums(ctx, y);
    const T* src = ctx.in(2).as<T>();
    walk.for_each([&](int64_t place, int64_t i) { sums.add(place, src[i]); });
    sums.store();
  });
}

void scatter_value(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterValueAttrs>();
  copy_part(ctx.pool(), y, ctx.in(0));
  const EntryWalk walk(ctx.pool(), ctx.in(1), *y.meta, y, attrs.dim,
                       "scatter");  // no other tensor is read
  dispatch_all(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T value = attrs.value.to<T>();
    walk.for_each([&](int64_t place, int64_t /*i*/) { target[place] = value; });
  });
}

// The neutral value.
template <class T>
T neutral(ScatterReduction reduction) {
  if (reduction == ScatterReduction::kProduct) return T(1);
  const bool is_largest = reduction == ScatterReduction::kSmallest;
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(neutral<float>(reduction));
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return is_largest ? kInfinity : -kInfinity;
  } else {
    return is_largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  }
}

// NaN wins over every number.
template <ScatterReduction kReduction, class T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(combine<kReduction>(static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return kReduction == ScatterReduction::kLargest ? a || b : a && b;
  } else if constexpr (kReduction != ScatterReduction::kProduct) {
    const bool is_first = kReduction == ScatterReduction::kLargest ? a > b : a < b;
    return is_first || a != a ? a : b;
  } else if constexpr (std::is_integral_v<T>) {  // wraps around
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <ScatterReduction kReduction, class T>
void reduce_entries(const EntryWalk& walk, bool include_self, T* target, const T* src) {
  if (!include_self) {
    walk.for_each([&](int64_t place, int64_t /*i*/) { target[place] = neutral<T>(kReduction); });
  }
  walk.for_each([&](int64_t place, int64_t i) {
    target[place] = combine<kReduction>(target[place], src[i]);
  });
}

void scatter_reduce(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterReduceAttrs>();
  copy_part(ctx.pool(), y, ctx.in(0));
  const EntryWalk walk(ctx.pool(), ctx.in(1), *y.meta, ctx.in(2), attrs.dim, "scatter_reduce");
  dispatch_all(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T* src = ctx.in(2).as<T>();
    switch (attrs.kind()) {
      case ScatterReduction::kProduct:
        return reduce_entries<ScatterReduction::kProduct>(walk, attrs.include_self, target, src);
      case ScatterReduction::kLargest:
        return reduce_entries<ScatterReduction::kLargest>(walk, attrs.include_self, target, src);
      case ScatterReduction::kSmallest:
        return reduce_entries<ScatterReduction::kSmallest>(walk, attrs.include_self, target, src);
    }
  });
}

template <KernelFn kFn>
KernelChoice select_scatter(const KernelQuery& query) {
  return {holds_partners(query.input(1), query.input(2)) ? kFn : nullptr};
}

KernelChoice select_gather(const KernelQuery& query) {
  return {same_part(query.input(1), query.output(0)) ? gather : nullptr};
}

KernelChoice select_ungather(const KernelQuery& query) {
  return {same_part(query.input(0), query.input(1)) ? ungather : nullptr};
}

}  // namespace

void register_gather_cpu(KernelTable& table) {
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kGather, DeviceType::kCpu, {name, select_gather});
  table.add(kUngather, DeviceType::kCpu, {name, select_ungather});
  table.add(kScatter, DeviceType::kCpu, {name, select_scatter<scatter>});
  table.add(kScatterAdd, DeviceType::kCpu, {name, select_scatter<scatter_add>});
  table.add(kScatterReduce, DeviceType::kCpu, {name, select_scatter<scatter_reduce>});
  table.add(kScatterValue, DeviceType::kCpu, {name, always<scatter_value>});
}

#include "ops/kernel/isa_end.h"
