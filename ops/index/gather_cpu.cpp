// Gather, scatter and their sums: one walk over the indices.
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/error.h"
#include "core/float16.h"
#include "core/kernel.h"
#include "ops/index/gather_op.h"
#include "ops/kernel/accumulate.h"
#include "ops/kernel/box_copy.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

void register_gather_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// Calls fn(place, other) for every entry of `index`, in row-major order. `place` is the offset in
// `x` to which the entry points, or -1 if another rank holds it; `other` is the offset of the
// entry's counterpart in the tensor that is indexed like index. A negative entry, or one past the
// logical size of x, throws.
template <class Fn>
void for_each_entry(const TensorView& index, const TensorMeta& x, const TensorView& other,
                    int64_t dim, const char* op, const Fn& fn) {
  const Shape& size = index.shape();
  if (size.numel() == 0) return;
  const int64_t ndim = size.size();
  const auto* entries = index.as<int64_t>();
  Shape at = Shape::filled(ndim, 0);
  while (true) {
    int64_t place = 0;
    int64_t other_place = 0;
    int64_t entry_place = 0;
    for (int64_t i = 0; i < ndim; ++i) {
      const int64_t position = at[i] + index.meta->local_begin[i];
      entry_place += at[i] * index.strides()[i];
      other_place += (position - other.meta->local_begin[i]) * other.strides()[i];
    }
    const int64_t entry = entries[entry_place];
    if (entry < 0 || entry >= x.shape[dim]) {
      throw InvalidArgument(str("[", op, "] index ", entry, " at ", at, " is out of range for dim ",
                                dim, " of size ", x.shape[dim], "; give positions from 0 to ",
                                x.shape[dim] - 1));
    }
    bool is_held = true;
    for (int64_t i = 0; i < ndim; ++i) {
      const int64_t position =
          (i == dim ? entry : at[i] + index.meta->local_begin[i]) - x.local_begin[i];
      is_held &= position >= 0 && position < x.local_shape[i];
      place += position * x.strides[i];
    }
    fn(is_held ? place : -1, other_place);
    int64_t i = ndim - 1;
    while (i >= 0 && ++at[i] == size[i])
      at[i--] = 0;
    if (i < 0) return;
  }
}

// Calls fn with an unsigned type of the size of `dtype`'s elements.
template <class Fn>
void dispatch_size(DType dtype, const Fn& fn) {
  switch (dtype_size(dtype)) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    default:
      return fn.template operator()<uint64_t>();
  }
}

void gather(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  dispatch_size(y.meta->dtype, [&]<class T>() {
    const T* x = ctx.in(0).as<T>();
    T* target = y.as<T>();
    for_each_entry(ctx.in(1), *ctx.in(0).meta, y, ctx.attrs_as<DimAttrs>().dim, "gather",
                   [&](int64_t place, int64_t i) { target[i] = place < 0 ? T{} : x[place]; });
  });
}

void ungather(const KernelContext& ctx) {
  const TensorView& y = ctx.in(0);
  dispatch_all(y.meta->dtype, [&]<class T>() {
    zero_part(ctx.out(0));
    const Accumulator<T> sums(ctx, ctx.out(0));
    const T* values = y.as<T>();
    for_each_entry(ctx.in(1), *ctx.out(0).meta, y, ctx.attrs_as<UngatherAttrs>().dim, "gather",
                   [&](int64_t place, int64_t i) {
                     if (place >= 0) sums.add(place, values[i]);
                   });
    sums.store();
  });
}

void scatter(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  copy_part(ctx.pool(), y, ctx.in(0));
  dispatch_size(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T* src = ctx.in(2).as<T>();
    for_each_entry(ctx.in(1), *y.meta, ctx.in(2), ctx.attrs_as<DimAttrs>().dim, "scatter",
                   [&](int64_t place, int64_t i) {
                     if (place >= 0) target[place] = src[i];
                   });
  });
}

void scatter_add(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  copy_part(ctx.pool(), y, ctx.in(0));
  dispatch_all(y.meta->dtype, [&]<class T>() {
    const Accumulator<T> sums(ctx, y);
    const T* src = ctx.in(2).as<T>();
    for_each_entry(ctx.in(1), *y.meta, ctx.in(2), ctx.attrs_as<DimAttrs>().dim, "scatter_add",
                   [&](int64_t place, int64_t i) {
                     if (place >= 0) sums.add(place, src[i]);
                   });
    sums.store();
  });
}

void scatter_value(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterValueAttrs>();
  copy_part(ctx.pool(), y, ctx.in(0));
  dispatch_all(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T value = attrs.value.to<T>();
    for_each_entry(ctx.in(1), *y.meta, ctx.in(1), attrs.dim, "scatter",
                   [&](int64_t place, int64_t /*i*/) {
                     if (place >= 0) target[place] = value;
                   });
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
template <class T>
T combine(ScatterReduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(combine<float>(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return reduction == ScatterReduction::kLargest ? a || b : a && b;
  } else {
    if (reduction == ScatterReduction::kProduct) {
      if constexpr (std::is_integral_v<T>) {  // wraps around
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      }
      return static_cast<T>(a * b);
    }
    if (a != a) return a;
    return (reduction == ScatterReduction::kLargest ? a > b : a < b) ? a : b;
  }
}

void scatter_reduce(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterReduceAttrs>();
  copy_part(ctx.pool(), y, ctx.in(0));
  dispatch_all(y.meta->dtype, [&]<class T>() {
    T* target = y.as<T>();
    const T* src = ctx.in(2).as<T>();
    const auto for_each = [&](const auto& fn) {
      for_each_entry(ctx.in(1), *y.meta, ctx.in(2), attrs.dim, "scatter_reduce", fn);
    };
    if (!attrs.include_self) {
      for_each([&](int64_t place, int64_t /*i*/) {
        if (place >= 0) target[place] = neutral<T>(attrs.kind());
      });
    }
    for_each([&](int64_t place, int64_t i) {
      if (place >= 0) target[place] = combine<T>(attrs.kind(), target[place], src[i]);
    });
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
  table.add(kGather, DeviceType::kCpu, {"reference", select_gather});
  table.add(kUngather, DeviceType::kCpu, {"reference", select_ungather});
  table.add(kScatter, DeviceType::kCpu, {"reference", select_scatter<scatter>});
  table.add(kScatterAdd, DeviceType::kCpu, {"reference", select_scatter<scatter_add>});
  table.add(kScatterReduce, DeviceType::kCpu, {"reference", select_scatter<scatter_reduce>});
  table.add(kScatterValue, DeviceType::kCpu, {"reference", always<scatter_value>});
}

#else

void register_gather_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
