// Sorts lines and selects their largest or smallest elements on CUDA devices, all lines at once.
#include "ops/index/sort_op.h"
#include "ops/kernel/merge_sort_cuda.cuh"

namespace flow::ops {

void register_sort_cuda(KernelTable& table);

namespace {

template <class C>
struct Entry {
  C value;
  int64_t index;
};

// A total order: NaN is larger than all numbers, the earlier of two equals comes first.
template <bool kDescending>
struct Before {
  template <class C>
  __device__ bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    const C x = kDescending ? b.value : a.value;
    const C y = kDescending ? a.value : b.value;
    if constexpr (std::is_floating_point_v<C>) {
      const bool x_nan = x != x;
      const bool y_nan = y != y;
      if (x_nan || y_nan) return x_nan == y_nan ? a.index < b.index : y_nan;
    }
    return x == y ? a.index < b.index : x < y;
  }
};

template <class T>
struct ReadLines {
  const T* x;
  Entry<Wide<T>>* entries;
  Slices slices;

  __device__ void operator()(int64_t i) const {
    const auto [line, at] = divide(i, slices.size);
    entries[i] = {widen(x[slices.begin(line) + at * slices.inner]), at};
  }
};

template <class T>
struct WriteLines {
  const Entry<Wide<T>>* entries;
  int64_t size;  // of the lines of entries
  T* values;
  int64_t* indices;
  Slices slices;  // of the outputs

  __device__ void operator()(int64_t i) const {
    const auto [line, at] = divide(i, slices.size);
    const Entry<Wide<T>> entry = entries[line * size + at];
    const int64_t place = slices.begin(line) + at * slices.inner;
    values[place] = narrow<T>(entry.value);
    indices[place] = entry.index;
  }
};

template <class T, bool kDescending>
void order_as(const KernelContext& ctx, const DenseInput& x, int64_t dim) {
  using E = Entry<Wide<T>>;
  const Slices lines(ctx.in(0).shape(), dim);
  const Slices wanted(ctx.out(0).shape(), dim);
  const int64_t count = ctx.in(0).numel();
  const ScratchArray<E> entries(ctx, count);
  const ScratchArray<E> spare(ctx, count);
  for_each_element(ctx, count, ReadLines<T>{x.as<T>(), entries.data(), lines});
  const E* sorted = merge_sort(ctx, lines.count(), lines.size, entries.data(), spare.data(),
                               Before<kDescending>{});
  for_each_element(
      ctx, ctx.out(0).numel(),
      WriteLines<T>{sorted, lines.size, ctx.out(0).as<T>(), ctx.out(1).as<int64_t>(), wanted});
}

void order(const KernelContext& ctx, int64_t dim, bool descending) {
  const DenseInput x(ctx, 0);
  if (ctx.out(0).numel() == 0) return;
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    if (descending) {
      order_as<T, true>(ctx, x, dim);
    } else {
      order_as<T, false>(ctx, x, dim);
    }
  });
}

void sort(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SortAttrs>();
  order(ctx, attrs.dim, attrs.descending);
}

void topk(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<TopkAttrs>();
  order(ctx, attrs.dim, attrs.largest);
}

}  // namespace

void register_sort_cuda(KernelTable& table) {
  table.add(kSort, DeviceType::kCuda, {"cuda", always<sort>});
  table.add(kTopk, DeviceType::kCuda, {"cuda", always<topk>});
}

}  // namespace flow::ops
