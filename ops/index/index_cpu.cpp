// Reads and writes at positions that index tensors name.
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "ops/index/index_op.h"
#include "ops/kernel/accumulate.h"
#include "ops/kernel/box_copy.h"

#include "ops/kernel/isa_begin.h"

void register_index_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

constexpr int64_t kElsewhere = INT64_MIN;

// The calling op, for messages, and whether negative entries count from the end.
struct Caller {
  const char* op;
  bool counts_from_end = true;
};

// Adds to `offsets` the offsets to which the entries of `index` point in dim `dim` of x, or
// kElsewhere for entries that another rank holds. Entries out of range throw.
void add_offsets(const TensorView& index, const TensorMeta& x, int64_t dim, const Caller& caller,
                 std::vector<int64_t>& offsets) {
  const int64_t size = x.shape[dim];
  const int64_t lowest = caller.counts_from_end ? -size : 0;
  const auto* entries = index.as<int64_t>();
  const Shape& shape = index.shape();
  Shape at = Shape::filled(shape.size(), 0);
  int64_t place = 0;
  for (int64_t& offset : offsets) {
    const int64_t entry = entries[place];
    if (entry < lowest || entry >= size) {
      throw InvalidArgument(str("[", caller.op, "] index ", entry, " is out of range for dim ", dim,
                                " of size ", size, "; give positions from ", lowest, " to ",
                                size - 1));
    }
    const int64_t position = (entry < 0 ? entry + size : entry) - x.local_begin[dim];
    if (position < 0 || position >= x.local_shape[dim]) {
      offset = kElsewhere;
    } else if (offset != kElsewhere) {
      offset += position * x.strides[dim];
    }
    for (int64_t i = shape.size() - 1; i >= 0; --i) {
      place += index.strides()[i];
      if (++at[i] < shape[i]) break;
      place -= index.strides()[i] * shape[i];
      at[i] = 0;
    }
  }
}

// x[…] as three nested loops: dims of x before the picked ones, the picks, dims after.
struct Picks {
  Shape outer;
  Strides outer_strides;
  std::vector<int64_t> offsets;  // of the picks, in x
  Shape inner;
  Strides inner_strides;
};

Picks make_picks(const KernelContext& ctx, int first_index, const TensorView& x, const Shape& dims,
                 const Caller& caller) {
  Picks picks;
  const TensorMeta& meta = *x.meta;
  int64_t outer_left = picked_position(dims);
  int64_t next = 0;
  picks.offsets.assign(static_cast<size_t>(ctx.in(first_index).numel()), 0);
  for (int64_t i = 0; i < meta.local_shape.size(); ++i) {
    if (next < dims.size() && dims[next] == i) {
      add_offsets(ctx.in(first_index + static_cast<int>(next++)), meta, i, caller, picks.offsets);
      continue;
    }
    const bool is_outer = outer_left-- > 0;
    (is_outer ? picks.outer : picks.inner).push_back(meta.local_shape[i]);
    (is_outer ? picks.outer_strides : picks.inner_strides).push_back(meta.strides[i]);
  }
  return picks;
}

// Calls fn(x_offset, y_offset) for the inner box of every pick that this rank holds, and for every
// outer position. y is contiguous.
template <class Fn>
void for_each_pick(const Picks& picks, const Fn& fn) {
  const int64_t inner = picks.inner.numel();
  const auto num_picks = static_cast<int64_t>(picks.offsets.size());
  if (inner == 0 || num_picks == 0) return;
  Shape at = Shape::filled(picks.outer.size(), 0);
  const int64_t outer = picks.outer.numel();
  int64_t base = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t n = 0; n < num_picks; ++n) {
      const int64_t offset = picks.offsets[static_cast<size_t>(n)];
      if (offset != kElsewhere) fn(base + offset, (o * num_picks + n) * inner);
    }
    for (int64_t i = picks.outer.size() - 1; i >= 0; --i) {
      base += picks.outer_strides[i];
      if (++at[i] < picks.outer[i]) break;
      base -= picks.outer_strides[i] * picks.outer[i];
      at[i] = 0;
    }
  }
}

int64_t element_bytes(const TensorView& tensor) {
  return static_cast<int64_t>(dtype_size(tensor.meta->dtype));
}

void index(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const auto& attrs = ctx.attrs_as<IndexAttrs>();
  const Picks picks = make_picks(ctx, 1, x, attrs.dims, {"index", attrs.counts_from_end});
  const auto bytes = element_bytes(y);
  for (const int64_t offset : picks.offsets) {
    if (offset != kElsewhere) continue;
    zero_part(y);
    break;
  }
  const BoxLoop box(picks.inner, contiguous_strides(picks.inner), picks.inner_strides,
                    static_cast<size_t>(bytes));
  for_each_pick(picks, [&](int64_t from, int64_t to) {
    box.copy(y.data + to * bytes, x.data + from * bytes);
  });
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

// Adds the contiguous `values` to `target` at the picks.
template <class T>
void add_picked(const KernelContext& ctx, const Picks& picks, const TensorView& target,
                const T* values) {
  const Accumulator<T> sums(ctx, target);
  const int64_t inner = picks.inner.numel();
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
  const Picks picks = make_picks(ctx, 2, y, attrs.dims, {"index_put"});
  if (y.data != ctx.in(0).data) copy_part(y, ctx.in(0));
  Ref<Storage> scratch;
  const std::byte* values = contiguous_data(ctx, ctx.in(1), scratch, y.data);
  if (attrs.accumulate) {
    dispatch_all(y.meta->dtype,
                 [&]<class T>() { add_picked(ctx, picks, y, reinterpret_cast<const T*>(values)); });
    return;
  }
  const auto bytes = element_bytes(y);
  const BoxLoop box(picks.inner, picks.inner_strides, contiguous_strides(picks.inner),
                    static_cast<size_t>(bytes));
  for_each_pick(picks, [&](int64_t to, int64_t from) {
    box.copy(y.data + to * bytes, values + from * bytes);
  });
}

template <class T>
bool is_nonzero(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x) != 0;
  } else {
    return x != T{};
  }
}

void nonzero(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const Shape& shape = x.shape();
  auto* target = ctx.out(0).as<int64_t>();
  dispatch_all(x.meta->dtype, [&]<class T>() {
    const T* values = x.as<T>();
    Shape at = Shape::filled(shape.size(), 0);
    int64_t place = 0;
    for (int64_t left = x.numel(); left > 0; --left) {
      if (is_nonzero(values[place])) target = std::copy(at.begin(), at.end(), target);
      for (int64_t i = shape.size() - 1; i >= 0; --i) {
        place += x.strides()[i];
        if (++at[i] < shape[i]) break;
        place -= x.strides()[i] * shape[i];
        at[i] = 0;
      }
    }
  });
}

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

}  // namespace

void register_index_cpu(KernelTable& table) {
  table.add(kIndex, DeviceType::kCpu, {"reference", always<index>});
  table.add(kIndexPut, DeviceType::kCpu, {"reference", always<index_put>});
  table.add(kUnindex, DeviceType::kCpu, {"reference", always<unindex>});
  table.add(kNonzero, DeviceType::kCpu, {"reference", always<nonzero>});
  table.add(kOneHot, DeviceType::kCpu, {"reference", always<one_hot>});
}

#else

void register_index_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
