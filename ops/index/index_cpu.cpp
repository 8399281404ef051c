// Reads and writes at positions that index tensors name.
#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/index/index_op.h"
#include "ops/kernel/accumulate.h"
#include "ops/kernel/box_copy.h"
#include "ops/kernel/copy_bytes.h"
#include "ops/kernel/dispatch_size.h"

#include "ops/kernel/isa_begin.h"

void register_index_cpu(KernelTable& table);

namespace {

constexpr int64_t kElsewhere = INT64_MIN;

int64_t element_bytes(const TensorView& tensor) {
  return static_cast<int64_t>(dtype_size(tensor.meta->dtype));
}

// y as a contiguous array: its memory, or a copy in `scratch`; always the latter if it is
// `written`.
const std::byte* contiguous_data(const KernelContext& ctx, const TensorView& y,
                                 Ref<Storage>& scratch, const std::byte* written = nullptr) {
  if (y.meta->is_contiguous && y.data != written) return y.data;
  scratch = ctx.scratch(static_cast<size_t>(y.numel() * element_bytes(y)));
  copy_box(y.shape(), {scratch->data(), contiguous_strides(y.shape())}, {y.data, y.strides()},
           static_cast<size_t>(element_bytes(y)));
  return scratch->data();
}

// The calling op, for messages, and whether negative entries count from the end.
struct Caller {
  const char* op;
  bool counts_from_end = true;
};

[[noreturn]] void throw_outside(const Caller& caller, int64_t entry, int64_t dim, int64_t size) {
  throw InvalidArgument(str("[", caller.op, "] index ", entry, " is out of range for dim ", dim,
                            " of size ", size, "; give positions from ",
                            caller.counts_from_end ? -size : 0, " to ", size - 1));
}

// Adds to `offsets` the offsets to which the entries of `index` point in dim `dim` of x, or
// kElsewhere for entries that another rank holds. Entries out of range throw.
void add_offsets(const KernelContext& ctx, const TensorView& index, const TensorMeta& x,
                 int64_t dim, const Caller& caller, std::span<int64_t> offsets) {
  const int64_t size = x.shape[dim];
  const int64_t lowest = caller.counts_from_end ? -size : 0;
  Ref<Storage> scratch;
  const auto* entries = reinterpret_cast<const int64_t*>(contiguous_data(ctx, index, scratch));
  const int64_t stride = x.strides[dim];
  const int64_t begin = x.local_begin[dim];
  const auto held = static_cast<uint64_t>(x.local_shape[dim]);
  bool is_outside = false;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t entry = entries[i];
    is_outside |= entry < lowest || entry >= size;
    const int64_t position = (entry < 0 ? entry + size : entry) - begin;
    const bool is_elsewhere = static_cast<uint64_t>(position) >= held || offsets[i] == kElsewhere;
    offsets[i] = is_elsewhere ? kElsewhere : offsets[i] + position * stride;
  }
  if (!is_outside) return;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (entries[i] < lowest || entries[i] >= size) throw_outside(caller, entries[i], dim, size);
  }
}

// x[…] as three nested loops: dims of x before the picked ones, the picks, dims after.
struct Picks {
  Shape outer;
  Strides outer_strides;
  Ref<Storage> memory;         // of the offsets
  std::span<int64_t> offsets;  // of the picks, in x
  Shape inner;
  Strides inner_strides;
  bool is_whole = true;  // no pick is elsewhere

  // The distance of neighbours if each pick is a line of elements, or 0.
  int64_t line_stride() const {
    int64_t stride = 0;
    int64_t size = 1;
    for (int64_t d = inner.size() - 1; d >= 0; --d) {
      if (inner[d] == 1) continue;
      if (inner_strides[d] == 0) return 0;  // an expanded dim
      if (stride == 0) stride = inner_strides[d];
      if (inner_strides[d] != stride * size) return 0;
      size *= inner[d];
    }
    return std::max<int64_t>(1, stride);
  }
};

Picks make_picks(const KernelContext& ctx, int first_index, const TensorView& x, const Shape& dims,
                 const Caller& caller) {
  Picks picks;
  const TensorMeta& meta = *x.meta;
  int64_t outer_left = picked_position(dims);
  int64_t next = 0;
  const auto num_picks = static_cast<size_t>(ctx.in(first_index).numel());
  picks.memory = ctx.scratch(num_picks * sizeof(int64_t));
  picks.offsets = {reinterpret_cast<int64_t*>(picks.memory->data()), num_picks};
  std::fill(picks.offsets.begin(), picks.offsets.end(), 0);
  for (int64_t i = 0; i < meta.local_shape.size(); ++i) {
    if (next < dims.size() && dims[next] == i) {
      add_offsets(ctx, ctx.in(first_index + static_cast<int>(next++)), meta, i, caller,
                  picks.offsets);
      picks.is_whole &= meta.local_shape[i] == meta.shape[i];
      continue;
    }
    const bool is_outer = outer_left-- > 0;
    (is_outer ? picks.outer : picks.inner).push_back(meta.local_shape[i]);
    (is_outer ? picks.outer_strides : picks.inner_strides).push_back(meta.strides[i]);
  }
  return picks;
}

// A part of the picks: those in `picks` at the outer positions in `outer`.
struct PickPart {
  Range outer;
  Range picks;
};

PickPart all_of(const Picks& picks) {
  return {{0, picks.outer.numel()}, {0, static_cast<int64_t>(picks.offsets.size())}};
}

// Calls fn(base, first) for the outer positions of a part: the picks are at base + offset in x, and
// the elements of all picks follow each other from `first` on in y, which is contiguous.
template <class Fn>
void for_each_outer(const Picks& picks, const PickPart& part, const Fn& fn) {
  const int64_t elements = static_cast<int64_t>(picks.offsets.size()) * picks.inner.numel();
  if (elements == 0 || part.outer.size == 0) return;
  Shape at = Shape::filled(picks.outer.size(), 0);
  int64_t base = 0;
  int64_t rest = part.outer.begin;
  for (int64_t i = picks.outer.size() - 1; i >= 0; --i) {
    at[i] = rest % picks.outer[i];
    rest /= picks.outer[i];
    base += at[i] * picks.outer_strides[i];
  }
  for (int64_t o = part.outer.begin; o < part.outer.begin + part.outer.size; ++o) {
    fn(base, o * elements);
    for (int64_t i = picks.outer.size() - 1; i >= 0; --i) {
      base += picks.outer_strides[i];
      if (++at[i] < picks.outer[i]) break;
      base -= picks.outer_strides[i] * picks.outer[i];
      at[i] = 0;
    }
  }
}

// Calls fn(x_offset, y_offset) for the inner box of every pick of a part that this rank holds, and
// for every outer position.
template <class Fn>
void for_each_pick(const Picks& picks, const PickPart& part, const Fn& fn) {
  const int64_t inner = picks.inner.numel();
  const int64_t end = part.picks.begin + part.picks.size;
  for_each_outer(picks, part, [&](int64_t base, int64_t first) {
    const int64_t* const offsets = picks.offsets.data();
    if (picks.is_whole) {
      for (int64_t n = part.picks.begin; n < end; ++n)
        fn(base + offsets[n], first + n * inner);
      return;
    }
    for (int64_t n = part.picks.begin; n < end; ++n) {
      if (offsets[n] != kElsewhere) fn(base + offsets[n], first + n * inner);
    }
  });
}

template <class Fn>
void for_each_pick(const Picks& picks, const Fn& fn) {
  for_each_pick(picks, all_of(picks), fn);
}

// Calls fn(x_offset, y_offset) as for_each_pick does, and fetches the lines of a pick of `bytes`
// bytes at x some picks before it is read: the picks are in no order that the hardware could learn.
template <class Fn>
void for_each_pick_ahead(const Picks& picks, const PickPart& part, const std::byte* x,
                         int64_t element_bytes, const Fn& fn) {
  constexpr int64_t kAhead = 4;
  constexpr int64_t kMostBytes = 1024;  // the hardware fetches the rest of a longer pick
  const int64_t inner = picks.inner.numel();
  const int64_t bytes = std::min(kMostBytes, inner * element_bytes);
  const int64_t end = part.picks.begin + part.picks.size;
  for_each_outer(picks, part, [&](int64_t base, int64_t first) {
    const int64_t* const offsets = picks.offsets.data();
    for (int64_t n = part.picks.begin; n < end; ++n) {
      const std::byte* const next =
          x + (base + offsets[std::min(n + kAhead, end - 1)]) * element_bytes;
      for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(next + i);
      fn(base + offsets[n], first + n * inner);
    }
  });
}

// Copies a part of the picks of `source` to the contiguous `target` (kOut), or the contiguous
// `source` to picks of `target`. Picks of one element are copied as such.
template <bool kOut>
void copy_picks(const Picks& picks, const PickPart& part, std::byte* target,
                const std::byte* source, DType dtype) {
  if (picks.inner.numel() == 1) {
    dispatch_size(dtype, [&]<class T>() {
      T* y = reinterpret_cast<T*>(target);
      const T* x = reinterpret_cast<const T*>(source);
      for_each_pick(picks, part, [&](int64_t i, int64_t k) { y[kOut ? k : i] = x[kOut ? i : k]; });
    });
    return;
  }
  const auto bytes = static_cast<int64_t>(dtype_size(dtype));
  if (kOut && picks.is_whole && picks.line_stride() == 1) {
    const auto pick_bytes = static_cast<size_t>(picks.inner.numel() * bytes);
    for_each_pick_ahead(picks, part, source, bytes, [&](int64_t i, int64_t k) {
      copy_bytes(target + k * bytes, source + i * bytes, pick_bytes);
    });
    return;
  }
  const Strides dense = contiguous_strides(picks.inner);
  const BoxLoop box(picks.inner, kOut ? dense : picks.inner_strides,
                    kOut ? picks.inner_strides : dense, dtype_size(dtype));
  for_each_pick(picks, part, [&](int64_t i, int64_t k) {
    box.copy(target + (kOut ? k : i) * bytes, source + (kOut ? i : k) * bytes);
  });
}

// Threads divide the outer positions or the picks, whichever are more.
void copy_out(ThreadPool& pool, const Picks& picks, std::byte* target, const std::byte* source,
              DType dtype) {
  constexpr int64_t kGrain = 16384;  // elements
  const PickPart all = all_of(picks);
  const bool by_outer = all.outer.size > all.picks.size;
  const int64_t count = by_outer ? all.outer.size : all.picks.size;
  const int64_t elements = all.outer.size * all.picks.size * picks.inner.numel();
  if (elements == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / (elements / count));
  pool.parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    PickPart part = all;
    (by_outer ? part.outer : part.picks) = {begin, end - begin};
    copy_picks<true>(picks, part, target, source, dtype);
  });
}

void index(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<IndexAttrs>();
  const Picks picks = make_picks(ctx, 1, x, attrs.dims, {"index", attrs.counts_from_end});
  if (!picks.is_whole) zero_part(y);
  copy_out(ctx.pool(), picks, y.data, x.data, y.meta->dtype);
}

// Adds the contiguous `values` to `target` at the picks.
template <class T>
void add_picked(const KernelContext& ctx, const Picks& picks, const TensorView& target,
                const T* values) {
  const Accumulator<T> sums(ctx, target);
  const int64_t inner = picks.inner.numel();
  if (inner == 1) {
    for_each_pick(picks, [&](int64_t to, int64_t from) { sums.add(to, values[from]); });
    sums.store();
    return;
  }
  if (const int64_t stride = picks.line_stride(); stride != 0) {
    for_each_pick(
        picks, [&](int64_t to, int64_t from) { sums.add_line(to, stride, values + from, inner); });
    sums.store();
    return;
  }
  Shape at = Shape::filled(picks.inner.size(), 0);
  for_each_pick(picks, [&](int64_t to, int64_t from) {
    int64_t place = to;
    for (int64_t i = 0; i < inner; ++i) {
      sums.add(place, values[from + i]);
      for (int64_t d = picks.inner.size() - 1; d >= 0; --d) {
        place += picks.inner_strides[d];
        if (++at[d] < picks.inner[d]) break;
        place -= picks.inner_strides[d] * picks.inner[d];
        at[d] = 0;
      }
    }
  });
  sums.store();
}

void unindex(const KernelContext& ctx) {
  const TensorView& y = ctx.in(0);
  const TensorView& x = ctx.out(0);
  const Picks picks = make_picks(ctx, 1, x, ctx.attrs_as<UnindexAttrs>().dims, {"index"});
  zero_part(x);
  Ref<Storage> scratch;
  const std::byte* values = contiguous_data(ctx, y, scratch);
  dispatch_all(y.meta->dtype,
               [&]<class T>() { add_picked(ctx, picks, x, reinterpret_cast<const T*>(values)); });
}

// In place when the output is the input; indices are checked before anything is written.
void index_put(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<IndexPutAttrs>();
  const TensorView& y = ctx.out(0);
  const Picks picks = make_picks(ctx, 2, y, attrs.dims, {"index_put", attrs.counts_from_end});
  if (y.data != ctx.in(0).data) copy_part(y, ctx.in(0));
  Ref<Storage> scratch;
  const std::byte* values = contiguous_data(ctx, ctx.in(1), scratch, y.data);
  if (attrs.accumulate) {
    dispatch_all(y.meta->dtype,
                 [&]<class T>() { add_picked(ctx, picks, y, reinterpret_cast<const T*>(values)); });
    return;
  }
  copy_picks<false>(picks, all_of(picks), y.data, values, y.meta->dtype);
}

#if FLOW_ISA == 0

void one_hot(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const int64_t classes = ctx.attrs_as<OneHotAttrs>().num_classes;
  const int64_t last = y.shape().size() - 1;
  const Range held = local_range(*y.meta, last);
  const TensorView& x = ctx.in(0);
  Ref<Storage> scratch;
  const auto* indices = reinterpret_cast<const int64_t*>(contiguous_data(ctx, x, scratch));
  zero_part(y);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (indices[i] < 0 || indices[i] >= classes) {
      throw InvalidArgument(str("[one_hot] index ", indices[i], " is not one of ", classes,
                                " classes; give a larger num_classes"));
    }
    const int64_t column = indices[i] - held.begin;
    if (column >= 0 && column < held.size) y.as<int64_t>()[i * held.size + column] = 1;
  }
}

#endif

}  // namespace

void register_index_cpu(KernelTable& table) {
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kIndex, DeviceType::kCpu, {name, always<index>});
  table.add(kIndexPut, DeviceType::kCpu, {name, always<index_put>});
  table.add(kUnindex, DeviceType::kCpu, {name, always<unindex>});
#if FLOW_ISA == 0
  table.add(kOneHot, DeviceType::kCpu, {name, always<one_hot>});
#endif
}

#include "ops/kernel/isa_end.h"
