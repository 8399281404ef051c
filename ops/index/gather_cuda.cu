// Gather, scatter and their sums on CUDA devices, with one thread for each entry of the index.
// Writes that may hit the same position use ops/kernel/segments_cuda.cuh.
#include "ops/index/gather_op.h"
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/kernel/fault_cuda.cuh"
#include "ops/kernel/segments_cuda.cuh"
#include "ops/local_parts.h"

namespace flow::ops {

void register_gather_cuda(KernelTable& table);

namespace {

// The offset in x to which entry i of the index (row-major) points, or -1 if another rank holds it,
// and the offset of the entry's counterpart in `other`, which is indexed like index.
struct Entries {
  struct Dim {
    int64_t size;
    int64_t index_stride;
    int64_t begin;
    int64_t x_begin;
    int64_t x_size;
    int64_t x_stride;
    int64_t other_begin;
    int64_t other_stride;
  };

  struct Pair {
    int64_t place;
    int64_t other;
  };

  const int64_t* index;
  int64_t count;
  int64_t x_size;  // logical, of the dim that entries name
  int num_dims;
  int dim;
  FaultReport fault;
  Dim dims[kMaxDims];

  Entries(const KernelContext& ctx, const TensorView& index_view, const TensorMeta& x,
          const TensorMeta& other, int64_t named_dim, const char* op)
      : index(index_view.as<int64_t>()),
        count(index_view.numel()),
        x_size(x.shape.empty() ? 1 : x.shape[named_dim]),
        num_dims(static_cast<int>(x.shape.size())),
        dim(static_cast<int>(named_dim)),
        fault(fault_report(ctx, op, 0, x_size - 1)) {
    const TensorMeta& meta = *index_view.meta;
    for (int i = 0; i < num_dims; ++i) {
      dims[i] = {meta.local_shape[i], meta.strides[i], meta.local_begin[i],  x.local_begin[i],
                 x.local_shape[i],    x.strides[i],    other.local_begin[i], other.strides[i]};
    }
  }

  __device__ Pair operator()(int64_t i) const {
    int64_t at[kMaxDims];
    int64_t index_place = 0;
    for (int d = num_dims - 1; d >= 0; --d) {
      const auto [quotient, rest] = divide(i, dims[d].size);
      at[d] = rest + dims[d].begin;
      index_place += rest * dims[d].index_stride;
      i = quotient;
    }
    const int64_t entry = index[index_place];
    bool is_held = entry >= 0 && entry < x_size;
    if (!is_held) fault.raise(entry);
    Pair pair{0, 0};
    for (int d = 0; d < num_dims; ++d) {
      pair.other += (at[d] - dims[d].other_begin) * dims[d].other_stride;
      const int64_t position = (d == dim ? entry : at[d]) - dims[d].x_begin;
      is_held = is_held && position >= 0 && position < dims[d].x_size;
      pair.place += position * dims[d].x_stride;
    }
    if (!is_held) pair.place = -1;
    return pair;
  }
};

template <class T>
struct Gather {
  Entries entries;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const auto [place, other] = entries(i);
    y[other] = place < 0 ? T{0} : x[place];
  }
};

void gather(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const Entries entries(ctx, ctx.in(1), *ctx.in(0).meta, *y.meta, ctx.attrs_as<DimAttrs>().dim,
                        "gather");
  dispatch_size(y.meta->dtype, [&]<class T>() {
    for_each_element(ctx, entries.count, Gather<T>{entries, ctx.in(0).as<T>(), y.as<T>()});
  });
}

struct PlaceEntries {
  Entries entries;
  PlacedValue* placed;
  int64_t* others;

  __device__ void operator()(int64_t i) const {
    const auto [place, other] = entries(i);
    placed[i] = {place, i};
    others[i] = other;
  }
};

// The entries of a scatter, sorted by their targets.
struct Scattered {
  ScratchArray<int64_t> others;
  SortedPlaces places;
  int64_t count;

  Scattered(const KernelContext& ctx, const Entries& entries)
      : others(ctx, entries.count),
        places(ctx, entries.count,
               [&](PlacedValue* placed) {
                 for_each_element(ctx, entries.count, PlaceEntries{entries, placed, others.data()});
               }),
        count(entries.count) {}

  template <class T, class Join>
  void join(const KernelContext& ctx, const T* values, T* target) const {
    if (count == 0) return;
    join_segments<Join>(ctx, Segments<T>{places.view(), 1, values, others.data(), dense_places(1),
                                         target, dense_places(1)});
  }
};

void ungather(const KernelContext& ctx) {
  const TensorView& y = ctx.in(0);
  const Scattered scattered(ctx, Entries(ctx, ctx.in(1), *ctx.out(0).meta, *y.meta,
                                         ctx.attrs_as<UngatherAttrs>().dim, "gather"));
  zero_part(ctx, ctx.out(0));
  dispatch_all(y.meta->dtype, [&]<class T>() {
    scattered.join<T, AddValues>(ctx, y.as<T>(), ctx.out(0).as<T>());
  });
}

void scatter(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const Scattered scattered(ctx, Entries(ctx, ctx.in(1), *y.meta, *ctx.in(2).meta,
                                         ctx.attrs_as<DimAttrs>().dim, "scatter"));
  copy_part(ctx, y, ctx.in(0));
  dispatch_size(y.meta->dtype, [&]<class T>() {
    for_each_element(
        ctx, scattered.count,
        LastOfSegments<T>{scattered.places.view(), 1, ctx.in(2).as<T>(), scattered.others.data(),
                          dense_places(1), y.as<T>(), dense_places(1)});
  });
}

void scatter_add(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const Scattered scattered(ctx, Entries(ctx, ctx.in(1), *y.meta, *ctx.in(2).meta,
                                         ctx.attrs_as<DimAttrs>().dim, "scatter_add"));
  copy_part(ctx, y, ctx.in(0));
  dispatch_all(y.meta->dtype,
               [&]<class T>() { scattered.join<T, AddValues>(ctx, ctx.in(2).as<T>(), y.as<T>()); });
}

template <class T>
struct ScatterValue {
  Entries entries;
  T* y;
  T value;

  __device__ void operator()(int64_t i) const {
    const int64_t place = entries(i).place;
    if (place >= 0) y[place] = value;
  }
};

void scatter_value(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterValueAttrs>();
  copy_part(ctx, y, ctx.in(0));
  const Entries entries(ctx, ctx.in(1), *y.meta, *y.meta, attrs.dim, "scatter");
  dispatch_all(y.meta->dtype, [&]<class T>() {
    for_each_element(ctx, entries.count, ScatterValue<T>{entries, y.as<T>(), attrs.value.to<T>()});
  });
}

// The product of a piece may overflow where the running product never does, such as that of large
// values after a zero.
template <ScatterReduction kKind>
struct Reduce {
  static constexpr bool kInPieces = kKind != ScatterReduction::kProduct;

  template <class T>
  static __device__ Wide<T> join(Wide<T> a, Wide<T> b) {
    if constexpr (std::is_same_v<T, bool>) {
      return kKind == ScatterReduction::kLargest ? a || b : a && b;
    } else if constexpr (kKind == ScatterReduction::kProduct) {
      if constexpr (std::is_integral_v<T>) {  // wraps around
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      } else if constexpr (kIsFloat16<T>) {  // rounds each product, as the CPU does
        return widen(narrow<T>(a * b));
      } else {
        return a * b;
      }
    } else {
      if (a != a) return a;  // NaN wins over every number
      return (kKind == ScatterReduction::kLargest ? a > b : a < b) ? a : b;
    }
  }
};

// The neutral value.
template <class T>
T neutral(ScatterReduction kind) {
  if constexpr (std::is_same_v<T, bool>) {
    return kind != ScatterReduction::kLargest;
  } else if (kind == ScatterReduction::kProduct) {
    return kIsFloat16<T> ? T(Wide<T>{1}) : static_cast<T>(1.0F);
  } else {
    const bool is_smallest = kind == ScatterReduction::kSmallest;
    if constexpr (kIsFloat<T>) {
      constexpr auto kInfinity = std::numeric_limits<Wide<T>>::infinity();
      return static_cast<T>(is_smallest ? kInfinity : -kInfinity);
    } else {
      return is_smallest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    }
  }
}

void scatter_reduce(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<ScatterReduceAttrs>();
  copy_part(ctx, y, ctx.in(0));
  const Entries entries(ctx, ctx.in(1), *y.meta, *ctx.in(2).meta, attrs.dim, "scatter_reduce");
  const Scattered scattered(ctx, entries);
  dispatch_all(y.meta->dtype, [&]<class T>() {
    if (!attrs.include_self) {
      for_each_element(ctx, entries.count,
                       ScatterValue<T>{entries, y.as<T>(), neutral<T>(attrs.kind())});
    }
    const T* src = ctx.in(2).as<T>();
    switch (attrs.kind()) {
      case ScatterReduction::kProduct:
        return scattered.join<T, Reduce<ScatterReduction::kProduct>>(ctx, src, y.as<T>());
      case ScatterReduction::kLargest:
        return scattered.join<T, Reduce<ScatterReduction::kLargest>>(ctx, src, y.as<T>());
      case ScatterReduction::kSmallest:
        return scattered.join<T, Reduce<ScatterReduction::kSmallest>>(ctx, src, y.as<T>());
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

void register_gather_cuda(KernelTable& table) {
  table.add(kGather, DeviceType::kCuda, {"cuda", select_gather});
  table.add(kUngather, DeviceType::kCuda, {"cuda", select_ungather});
  table.add(kScatter, DeviceType::kCuda, {"cuda", select_scatter<scatter>});
  table.add(kScatterAdd, DeviceType::kCuda, {"cuda", select_scatter<scatter_add>});
  table.add(kScatterReduce, DeviceType::kCuda, {"cuda", select_scatter<scatter_reduce>});
  table.add(kScatterValue, DeviceType::kCuda, {"cuda", always<scatter_value>});
}

}  // namespace flow::ops
