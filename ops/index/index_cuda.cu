// Reads and writes at positions that index tensors name, on CUDA devices.
#include "ops/index/index_op.h"
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/kernel/fault_cuda.cuh"
#include "ops/kernel/segments_cuda.cuh"

namespace flow::ops {

void register_index_cuda(KernelTable& table);

namespace {

// The offset of pick n of the index tensors from the first element of x; -1 for picks that another
// rank holds and for picks out of range, which are reported.
struct PickOffsets {
  struct Index {
    const int64_t* entries;
    Places places;
    int64_t x_size;  // logical
    int64_t begin;
    int64_t held;
    int64_t stride;
    int64_t lowest;
    FaultReport fault;
  };

  int num_indices;
  Index indices[kMaxDims];
  int64_t* offsets;

  __device__ void operator()(int64_t n) const {
    int64_t offset = 0;
    for (int k = 0; k < num_indices; ++k) {
      const Index& index = indices[k];
      const int64_t entry = index.entries[index.places(n)];
      const bool exists = entry >= index.lowest && entry < index.x_size;
      if (!exists) index.fault.raise(entry);
      const int64_t position = (entry < 0 ? entry + index.x_size : entry) - index.begin;
      if (!exists || position < 0 || position >= index.held) {
        offset = -1;
        break;
      }
      offset += position * index.stride;
    }
    offsets[n] = offset;
  }
};

// x[…] as three nested loops: dims of x before the picked ones, the picks, dims after.
struct Picks {
  int64_t count;
  ScratchArray<int64_t> offsets;
  Shape outer;
  Strides outer_strides;
  Shape inner;
  Strides inner_strides;

  Picks(const KernelContext& ctx, int first_index, const TensorView& x, const Shape& dims,
        const char* op, bool counts_from_end = true)
      : count(ctx.in(first_index).numel()), offsets(ctx, count) {
    const TensorMeta& meta = *x.meta;
    int64_t outer_left = picked_position(dims);
    PickOffsets pick{};
    for (int64_t i = 0; i < meta.local_shape.size(); ++i) {
      if (pick.num_indices < dims.size() && dims[pick.num_indices] == i) {
        const TensorView& index = ctx.in(first_index + pick.num_indices);
        const int64_t size = meta.shape[i];
        const int64_t lowest = counts_from_end ? -size : 0;
        pick.indices[pick.num_indices++] = {index.as<int64_t>(),
                                            Places(*index.meta),
                                            size,
                                            meta.local_begin[i],
                                            meta.local_shape[i],
                                            meta.strides[i],
                                            lowest,
                                            fault_report(ctx, op, lowest, size - 1)};
        continue;
      }
      const bool is_outer = outer_left-- > 0;
      (is_outer ? outer : inner).push_back(meta.local_shape[i]);
      (is_outer ? outer_strides : inner_strides).push_back(meta.strides[i]);
    }
    pick.offsets = offsets.data();
    for_each_element(ctx, count, pick);
  }

  // The elements that one pick names: outer dims, then inner ones.
  int64_t columns() const { return outer.numel() * inner.numel(); }

  // Their offsets in x, from the offset of the pick.
  Places in_x() const { return joined(outer_strides, inner_strides); }

  // Their offsets in y, (outer, picks, inner), from pick * inner.
  Places in_y() const {
    Strides before = contiguous_strides(outer);
    for (int64_t& stride : before)
      stride *= count * inner.numel();
    return joined(before, contiguous_strides(inner));
  }

 private:
  Places joined(const Strides& before, const Strides& after) const {
    Shape size = outer;
    Strides strides = before;
    for (int64_t i = 0; i < inner.size(); ++i) {
      size.push_back(inner[i]);
      strides.push_back(after[i]);
    }
    return {size, strides};
  }
};

template <class T>
struct Pick {
  const T* x;
  T* y;
  const int64_t* offsets;
  int64_t count;
  int64_t inner;
  Places outer_places;
  Places inner_places;

  __device__ void operator()(int64_t i) const {
    const auto [pick, at] = divide(i, inner);
    const auto [o, n] = divide(pick, count);
    const int64_t offset = offsets[n];
    y[i] = offset < 0 ? T{0} : x[outer_places(o) + offset + inner_places(at)];
  }
};

void index(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<IndexAttrs>();
  const Picks picks(ctx, 1, x, attrs.dims, "index", attrs.counts_from_end);
  dispatch_size(y.meta->dtype, [&]<class T>() {
    for_each_element(ctx, y.numel(),
                     Pick<T>{x.as<T>(), y.as<T>(), picks.offsets.data(), picks.count,
                             picks.inner.numel(), Places(picks.outer, picks.outer_strides),
                             Places(picks.inner, picks.inner_strides)});
  });
}

struct PlacePicks {
  const int64_t* offsets;
  PlacedValue* placed;
  int64_t* values;  // the pick's first element
  int64_t inner;

  __device__ void operator()(int64_t n) const {
    placed[n] = {offsets[n], n};
    values[n] = n * inner;
  }
};

// The picks, sorted by their targets.
struct SortedPicks {
  ScratchArray<int64_t> values;
  SortedPlaces places;

  SortedPicks(const KernelContext& ctx, const Picks& picks)
      : values(ctx, picks.count), places(ctx, picks.count, [&](PlacedValue* placed) {
          for_each_element(
              ctx, picks.count,
              PlacePicks{picks.offsets.data(), placed, values.data(), picks.inner.numel()});
        }) {}
};

template <class T>
void add_picked(const KernelContext& ctx, const Picks& picks, const SortedPicks& sorted,
                const T* values, T* target) {
  if (picks.count * picks.columns() == 0) return;
  join_segments<AddValues>(
      ctx, Segments<T>{sorted.places.view(), picks.columns(), values, sorted.values.data(),
                       picks.in_y(), target, picks.in_x()});
}

void unindex(const KernelContext& ctx) {
  const TensorView& x = ctx.out(0);
  const DenseInput y(ctx, 0);
  const Picks picks(ctx, 1, x, ctx.attrs_as<UnindexAttrs>().dims, "index");
  zero_part(ctx, x);
  if (picks.count * picks.columns() == 0) return;
  const SortedPicks sorted(ctx, picks);
  dispatch_all(x.meta->dtype,
               [&]<class T>() { add_picked(ctx, picks, sorted, y.as<T>(), x.as<T>()); });
}

// In place when the output is the input.
void index_put(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<IndexPutAttrs>();
  const TensorView& y = ctx.out(0);
  const Picks picks(ctx, 2, y, attrs.dims, "index_put", attrs.counts_from_end);
  const DenseInput values(ctx, 1);
  // Values that are the tensor itself are read before it is written.
  Ref<Storage> copy;
  const std::byte* source = values.as<std::byte>();
  if (source == y.data && y.numel() > 0) {
    copy = ctx.scratch(ctx.in(1).meta->local_bytes());
    copy_box(ctx, ctx.in(1).shape(), {copy->data(), contiguous_strides(ctx.in(1).shape())},
             {ctx.in(1).data, ctx.in(1).strides()}, y.meta->dtype);
    source = copy->data();
  }
  copy_part(ctx, y, ctx.in(0));
  if (picks.count * picks.columns() == 0) return;
  const SortedPicks sorted(ctx, picks);
  if (attrs.accumulate) {
    dispatch_all(y.meta->dtype, [&]<class T>() {
      add_picked(ctx, picks, sorted, reinterpret_cast<const T*>(source), y.as<T>());
    });
    return;
  }
  dispatch_size(y.meta->dtype, [&]<class T>() {
    for_each_element(
        ctx, picks.count * picks.columns(),
        LastOfSegments<T>{sorted.places.view(), picks.columns(), reinterpret_cast<const T*>(source),
                          sorted.values.data(), picks.in_y(), y.as<T>(), picks.in_x()});
  });
}

// ---- nonzero: counts of stretches, where each stretch begins, then the positions

constexpr int64_t kStretch = 64;

template <class T>
struct CountNonzero {
  const T* x;
  int64_t n;
  int64_t* counts;

  __device__ void operator()(int64_t stretch) const {
    int64_t count = 0;
    for (int64_t i = stretch * kStretch; i < std::min(n, (stretch + 1) * kStretch); ++i)
      count += widen(x[i]) != Wide<T>{0} ? 1 : 0;
    counts[stretch] = count;
  }
};

// By one team, each thread of which takes some stretches that follow each other.
struct BeginStretches {
  int64_t* counts;
  int64_t stretches;

  __device__ void operator()(int64_t /*row*/, Team team) const {
    __shared__ int64_t totals[kMostThreads];
    const int64_t share = (stretches + team.step() - 1) / team.step();
    const int64_t first = std::min(stretches, team.first() * share);
    const int64_t last = std::min(stretches, first + share);
    int64_t total = 0;
    for (int64_t s = first; s < last; ++s)
      total += counts[s];
    totals[threadIdx.x] = total;
    __syncthreads();
    int64_t begin = 0;
    for (unsigned t = 0; t < threadIdx.x; ++t)
      begin += totals[t];
    for (int64_t s = first; s < last; ++s) {
      const int64_t count = counts[s];
      counts[s] = begin;
      begin += count;
    }
  }
};

template <class T>
struct WriteNonzero {
  const T* x;
  int64_t n;
  const int64_t* begins;
  int64_t* y;
  int64_t limit;
  int num_dims;
  int64_t size[kMaxDims];

  __device__ void operator()(int64_t stretch) const {
    int64_t row = begins[stretch];
    for (int64_t i = stretch * kStretch; i < std::min(n, (stretch + 1) * kStretch); ++i) {
      if (widen(x[i]) == Wide<T>{0} || row >= limit) continue;
      int64_t rest = i;
      for (int d = num_dims - 1; d >= 0; --d) {
        const auto [quotient, at] = divide(rest, size[d]);
        y[row * num_dims + d] = at;
        rest = quotient;
      }
      ++row;
    }
  }
};

void nonzero(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  if (y.numel() == 0) return;
  const DenseInput dense(ctx, 0);
  const int64_t n = x.numel();
  const int64_t stretches = (n + kStretch - 1) / kStretch;
  const ScratchArray<int64_t> counts(ctx, stretches);
  dispatch_all(x.meta->dtype, [&]<class T>() {
    for_each_element(ctx, stretches, CountNonzero<T>{dense.as<T>(), n, counts.data()});
    cuda::launch(team_kernel<BeginStretches>, 1, kMostThreads, 0, cuda::stream_of(ctx),
                 BeginStretches{counts.data(), stretches}, 1);
    WriteNonzero<T> write{dense.as<T>(),
                          n,
                          counts.data(),
                          y.as<int64_t>(),
                          y.shape()[0],
                          static_cast<int>(x.shape().size()),
                          {}};
    std::copy(x.shape().begin(), x.shape().end(), write.size);
    for_each_element(ctx, stretches, write);
  });
}

struct OneHot {
  const int64_t* indices;
  int64_t* y;
  int64_t held;
  int64_t first;
  int64_t classes;
  FaultReport fault;

  __device__ void operator()(int64_t i) const {
    const auto [row, column] = divide(i, held);
    const int64_t index = indices[row];
    if (index < 0 || index >= classes) fault.raise(index);
    y[i] = index == first + column ? 1 : 0;
  }
};

void one_hot(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const DenseInput indices(ctx, 0);
  const int64_t classes = ctx.attrs_as<OneHotAttrs>().num_classes;
  const Range held = local_range(*y.meta, y.shape().size() - 1);
  for_each_element(ctx, y.numel(),
                   OneHot{indices.as<int64_t>(), y.as<int64_t>(), held.size, held.begin, classes,
                          fault_report(ctx, "one_hot", 0, classes - 1)});
}

}  // namespace

void register_index_cuda(KernelTable& table) {
  table.add(kIndex, DeviceType::kCuda, {"cuda", always<index>});
  table.add(kIndexPut, DeviceType::kCuda, {"cuda", always<index_put>});
  table.add(kUnindex, DeviceType::kCuda, {"cuda", always<unindex>});
  table.add(kNonzero, DeviceType::kCuda, {"cuda", always<nonzero>});
  table.add(kOneHot, DeviceType::kCuda, {"cuda", always<one_hot>});
}

}  // namespace flow::ops
